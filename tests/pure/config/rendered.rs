//! What people see: place, quoted line, carets, key, hint, and a count at the end.

use runner::internal::config::Place;

use super::desk::{Desk, GOOD, job_with};

#[test]
fn a_problem_shows_its_line_with_carets_under_the_very_place() {
    let text =
        "[jobs.reconcile]\nschedule = \"0 0 31 2 *\"\nkind = \"command\"\nparams = { argv = [\"x\"] }\n";
    let printed = Desk::with(text).printed();
    let expected_start = "error: jobs.reconcile.schedule: ";
    assert!(printed.starts_with(expected_start), "{printed}");
    let expected = " --> jobs.toml:2:12\n  |\n2 | schedule = \"0 0 31 2 *\"\n  |            ^^^^^^^^^^^^\n";
    assert!(printed.contains(expected), "{printed}");
    assert!(printed.ends_with("\n1 problem in jobs.toml"), "{printed}");
}

#[test]
fn the_whole_text_of_two_problems_is_this() {
    let text = "\
[runner]
timezone = \"Europe/Berln\"

[jobs.a]
shedule = \"0 0 * * * *\"
every = 30
kind = \"command\"
params = { argv = [\"/bin/true\"] }
";
    let expected = "\
error: runner.timezone: unknown time zone \"Europe/Berln\"
 --> jobs.toml:2:12
  |
2 | timezone = \"Europe/Berln\"
  |            ^^^^^^^^^^^^^^
  = hint: did you mean \"Europe/Berlin\"?

error: jobs.a.shedule: unknown key \"shedule\"
 --> jobs.toml:5:1
  |
5 | shedule = \"0 0 * * * *\"
  | ^^^^^^^
  = hint: did you mean schedule?

error: jobs.a.every: a duration needs a unit
 --> jobs.toml:6:9
  |
6 | every = 30
  |         ^^
  = hint: write \"30s\" for 30 seconds

3 problems in jobs.toml";
    assert_eq!(Desk::with(text).printed(), expected);
}

#[test]
fn line_numbers_of_two_digits_keep_the_carets_in_place() {
    let text = format!("{}{}", "#\n".repeat(11), job_with("overlap = \"forbid\""));
    let expected =
        "   |\n16 | overlap = \"forbid\"\n   |           ^^^^^^^^\n   = hint: did you mean \"skip\"?\n";
    let printed = Desk::with(&text).printed();
    assert!(printed.contains(expected), "{printed}");
}

#[test]
fn wide_letters_and_tabs_before_the_place_do_not_move_the_carets() {
    let text =
        "jobs.a = { description = \"对账\", every = 5,\tkind = \"command\", params = { argv = [\"x\"] } }";
    let printed = Desk::with(text).printed();
    let caret = printed.lines().find(|line| line.contains('^')).expect("a caret");
    let quoted = printed.lines().find(|line| line.starts_with("1 | ")).expect("the line");
    let before = quoted.split("5,").next().expect("text");
    // Two of the letters take two columns each.
    assert_eq!(caret.find('^'), Some(before.chars().count() + 2), "{printed}");
    assert!(!quoted.contains('\t'));
}

#[test]
fn a_quoted_line_cannot_steer_the_terminal() {
    let printed = Desk::with("[jobs.a]\nevery = 5 # \u{7f}\n").printed();
    assert!(!printed.contains('\u{7f}'), "{printed:?}");
}

#[test]
fn a_problem_of_the_environment_names_its_variable() {
    let printed = Desk::with(GOOD).set("RUNNER__LOCK__TTL", "10").printed();
    let expected = "\
error: lock.ttl: a duration needs a unit
 --> environment variable RUNNER__LOCK__TTL
  = hint: write \"10s\" for 10 seconds

1 problem in jobs.toml and its environment";
    assert_eq!(printed, expected);
}

#[test]
fn problems_come_in_the_order_of_the_file() {
    let text = "[jobs.b]\nkind = \"nope\"\n[jobs.a]\nkind = \"nope\"\n[lock]\nttl = 1\n";
    let lines: Vec<usize> = Desk::with(text)
        .problems()
        .iter()
        .map(|problem| match problem.place {
            Place::Line { line, .. } => line,
            _ => 0,
        })
        .collect();
    assert_eq!(lines, [1, 2, 3, 4, 6]);
}

#[test]
fn a_missing_key_is_shown_at_the_header_of_its_table() {
    let problems = Desk::with("[jobs.a]\nenabled = true\n").problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    for problem in problems {
        assert_eq!(problem.key, "jobs.a");
        assert!(matches!(problem.place, Place::Line { line: 1, column: 7, .. }), "{problem:?}");
    }
}

#[test]
fn a_problem_that_is_found_after_the_load_still_finds_its_line() {
    let text = "[jobs.a]\nevery = \"5s\"\nkind = \"report\"\n\n[jobs.a.params]\nrows = [1, 2,\n  3]\n";
    let config = Desk::with(text).config();
    let place = |key: &str| match config.problem_at(key, "bad", None).place {
        Place::Line { line, column, quote, .. } => (line, column, quote.to - quote.from),
        other => panic!("{other:?}"),
    };
    assert_eq!(place("jobs.a.params.rows[2]"), (7, 3, 1));
    assert_eq!(place("jobs.a.params.rows.0"), (6, 9, 1));
    assert_eq!(place("jobs.a.params"), (5, 9, 6));
    assert_eq!(place("jobs.a.params.missing"), (5, 9, 6));
    assert_eq!(place("jobs.a.kind"), (3, 8, 8));
}

#[test]
fn a_problem_with_params_of_the_defaults_is_shown_there() {
    let text = "[defaults]\nparams = { rows = 1 }\n[jobs.a]\nevery = \"5s\"\nkind = \"report\"\n";
    let config = Desk::with(text).config();
    let problem = config
        .param_problem(&config.jobs[0], &runner::internal::config::ParamProblem::new("rows", "too few"));
    assert_eq!(problem.key, "defaults.params.rows");
    assert!(matches!(problem.place, Place::Line { line: 2, .. }), "{problem:?}");
}
