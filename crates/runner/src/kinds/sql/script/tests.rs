use super::*;

fn one(text: &str) -> (String, Vec<Bind>) {
    let script = Script::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let [statement] = <[UserStatement; 1]>::try_from(script.statements).expect("one statement");
    (statement.text, statement.binds)
}

/// Read as one statement that stays as it is.
#[track_caller]
fn untouched(text: &str) {
    assert_eq!(one(text), (text.to_owned(), Vec::new()));
}

fn refused(text: &str) -> String {
    Script::parse(text).expect_err(text).to_string()
}

#[test]
fn names_become_binds_in_the_order_of_their_first_use() {
    assert_eq!(
        one("INSERT INTO t VALUES (:scheduled_at, :job, :scheduled_at, :shards)"),
        ("INSERT INTO t VALUES ($1, $2, $1, $3)".into(), vec![Bind::ScheduledAt, Bind::Job, Bind::Shards])
    );
    assert_eq!(one("SELECT :shard+:shards").0, "SELECT $1+$2");
    assert_eq!(one("SELECT(:fence)").0, "SELECT($1)");
    assert_eq!(one("SELECT a[:attempt]").1, [Bind::Attempt]);
    assert_eq!(one("SELECT :idempotency_key").1, [Bind::IdempotencyKey]);
}

#[test]
fn a_cast_is_not_a_bind() {
    assert_eq!(one("SELECT :scheduled_at::date, 'x'::text").0, "SELECT $1::date, 'x'::text");
    untouched("SELECT '{1}'::int[]");
}

#[test]
fn text_names_and_comments_are_left_alone() {
    for text in [
        "SELECT 'a :job; b'",
        "SELECT 'it''s :job'",
        r"SELECT E'it\'s :job; ', 'x'",
        r"SELECT e'\\', ' :job'",
        r"SELECT 'C:\job\', ':job'",
        "SELECT \"a :job;\"\" b\" FROM t",
        "SELECT `a :job;` FROM t",
        "SELECT 1 -- :job; until the end of the line\n + 1",
        "SELECT 1 /* :job; /* deeper :job */ ; */ + 1",
        "SELECT $$a :job; 'b$$",
        "SELECT $body$a $$ :job; $other$ b$body$",
        "SELECT a$1, a$b$ FROM t",
        "SELECT a ? 'b', a @> b, 1:: text",
        "SELECT arr[1:2], arr[lo: hi], x := 1",
        "SELECT 'größe :job', größe FROM t",
    ] {
        untouched(text);
    }
}

#[test]
fn a_semicolon_outside_text_and_comments_ends_a_statement() {
    let script = Script::parse(
        "-- first\nUPDATE a SET b = ';' WHERE c = :fence;\n;; /* nothing */ ;\nDELETE FROM d WHERE e = :job;\n",
    )
    .unwrap();
    let texts: Vec<_> = script.statements.iter().map(|statement| statement.text.as_str()).collect();
    assert_eq!(texts, ["-- first\nUPDATE a SET b = ';' WHERE c = $1", "DELETE FROM d WHERE e = $1"]);
    assert_eq!(script.statements[1].binds, [Bind::Job]);
}

#[test]
fn a_mistake_is_refused_with_its_place() {
    for (text, words) in [
        ("SELECT 1,\n  :jbo", "line 2, column 3: there is no bind :jbo; the binds are :job,"),
        ("SELECT :Job", ":Job"),
        ("SELECT arr[lo:hi]", "put a space after the colon"),
        ("SELECT 'a", "line 1, column 8: this ' is never closed"),
        ("SELECT \"a", "this \" is never closed"),
        ("SELECT /* a /* b */", "line 1, column 8: this comment has no end"),
        ("SELECT $a$ b", "this $a$ is never closed"),
        ("SELECT $1", "$1 is not a bind here"),
        ("SELECT $name", "$name is not a bind here"),
        ("", "no statement"),
        (" ; -- a\n;", "no statement"),
    ] {
        let refusal = refused(text);
        assert!(refusal.contains(words), "{text}: {refusal}");
    }
}

#[test]
fn a_script_cannot_end_its_own_transaction() {
    for text in [
        "COMMIT",
        "SELECT 1;\n  -- so\n  commit; SELECT 2",
        "begin",
        "BEGIN IMMEDIATE",
        "START TRANSACTION",
        "END",
        "ROLLBACK",
        "abort;",
        "PREPARE TRANSACTION 'x'",
    ] {
        assert!(refused(text).contains("one transaction already"), "{text}");
    }
    assert!(refused("SELECT 1;\n  -- so\n  commit").starts_with("line 3, column 3: "));
    for text in ["SAVEPOINT a", "ROLLBACK TO a", "PREPARE p AS SELECT 1", "SELECT begin FROM t"] {
        untouched(text);
    }
}

#[test]
fn a_question_mark_is_noticed_outside_of_text() {
    assert!(Script::parse("SELECT ?").unwrap().statements[0].has_question_mark);
    assert!(!Script::parse("SELECT '?' -- ?").unwrap().statements[0].has_question_mark);
}
