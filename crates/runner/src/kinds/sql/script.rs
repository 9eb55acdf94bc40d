//! Splits a script into statements and replaces each `:name` by a bind.
//!
//! It knows only where text, quoted names and comments begin and end, because a `:name` or a semicolon inside
//! them is not a bind and not an end. The database judges whether a statement is correct.

use std::fmt;

/// A value that a run passes to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bind {
    Job,
    ScheduledAt,
    Shard,
    Shards,
    Fence,
    Attempt,
    IdempotencyKey,
}

const BINDS: [(&str, Bind); 7] = [
    ("job", Bind::Job),
    ("scheduled_at", Bind::ScheduledAt),
    ("shard", Bind::Shard),
    ("shards", Bind::Shards),
    ("fence", Bind::Fence),
    ("attempt", Bind::Attempt),
    ("idempotency_key", Bind::IdempotencyKey),
];

/// One statement, ready for either database.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UserStatement {
    /// With `$1`, `$2`, … for the binds: both databases understand that.
    pub(super) text: String,
    /// What `$1`, `$2`, … stand for.
    pub(super) binds: Vec<Bind>,
    /// In PostgreSQL an operator, in SQLite a bind without a name.
    pub(super) has_question_mark: bool,
}

/// One statement or more.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) statements: Vec<UserStatement>,
}

/// Without the text, which may hold what an `{ env }` stands for.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({} statements)", self.statements.len())
    }
}

impl fmt::Debug for UserStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserStatement({:?})", self.binds)
    }
}

/// Why a script cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub(super) struct Unreadable {
    line: usize,
    column: usize,
    what: String,
}

impl Script {
    /// Splits `text` into statements.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        let mut scan = Scan { text, at: 0, open: Open::new(0), statements: Vec::new() };
        while let Some(c) = scan.rest().chars().next() {
            scan.step(c)?;
        }
        scan.end_statement()?;
        if scan.statements.is_empty() {
            return Err(scan.unreadable(0, "there is no statement in it"));
        }
        Ok(Self { statements: scan.statements })
    }
}

/// A statement whose end has not been seen.
struct Open {
    started: usize,
    text: String,
    binds: Vec<Bind>,
    has_question_mark: bool,
    /// Its first words, in upper case; empty while only space and comments were read.
    words: Vec<String>,
    has_code: bool,
}

impl Open {
    fn new(started: usize) -> Self {
        Self {
            started,
            text: String::new(),
            binds: Vec::new(),
            has_question_mark: false,
            words: Vec::new(),
            has_code: false,
        }
    }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    open: Open,
    statements: Vec<UserStatement>,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn step(&mut self, c: char) -> Result<(), Unreadable> {
        let rest = self.rest();
        if rest.starts_with("--") {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.take(end);
            return Ok(());
        }
        if rest.starts_with("/*") {
            let end = comment(rest).ok_or_else(|| self.unreadable(self.at, "this comment has no end"))?;
            self.take(end);
            return Ok(());
        }
        if c.is_whitespace() {
            self.take(c.len_utf8());
            return Ok(());
        }
        if c == ';' {
            self.end_statement()?;
            self.at += 1;
            self.open = Open::new(self.at);
            return Ok(());
        }
        if !self.open.has_code {
            self.open.has_code = true;
            self.open.started = self.at;
        }
        match c {
            '\'' | '"' | '`' => self.quoted(c, false),
            '$' => self.dollar(),
            ':' => self.colon(),
            c if starts_name(c) => self.word(),
            c => {
                self.open.has_question_mark |= c == '?';
                // A number and the letters that follow it directly contain no bind.
                let end = rest.find(|c| !continues_name(c)).filter(|end| *end > 0);
                self.take(end.unwrap_or(if continues_name(c) { rest.len() } else { c.len_utf8() }));
                Ok(())
            }
        }
    }

    /// A word. If the word is `E` and a quote follows directly, backslashes in the quoted text are escapes.
    fn word(&mut self) -> Result<(), Unreadable> {
        let rest = self.rest();
        let end = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        let word = rest[..end].to_uppercase();
        let escapes = word == "E" && rest[end..].starts_with('\'');
        if self.open.words.len() < 2 {
            self.open.words.push(word);
        }
        self.take(end);
        if escapes { self.quoted('\'', true) } else { Ok(()) }
    }

    /// Text or a quoted name. Inside it, two quotes stand for one.
    fn quoted(&mut self, quote: char, escapes: bool) -> Result<(), Unreadable> {
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if escapes && c == '\\' {
                chars.next();
            } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
                self.take(at + quote.len_utf8());
                return Ok(());
            }
        }
        Err(self.unreadable(self.at, &format!("this {quote} is never closed")))
    }

    /// Text between dollars, as in `$body$ … $body$`.
    fn dollar(&mut self) -> Result<(), Unreadable> {
        let rest = self.rest();
        let tag = &rest[..rest[1..].find(|c| !is_tag(c)).map_or(rest.len(), |end| end + 1)];
        let opens = rest[tag.len()..].starts_with('$');
        if !opens || tag[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let what = format!("{tag} is not a bind here: use a named bind, like :shard");
            return Err(self.unreadable(self.at, &what));
        }
        let delimiter = &rest[..=tag.len()];
        let body = &rest[delimiter.len()..];
        match body.find(delimiter) {
            Some(end) => {
                self.take(2 * delimiter.len() + end);
                Ok(())
            }
            None => Err(self.unreadable(self.at, &format!("this {delimiter} is never closed"))),
        }
    }

    /// A bind, a cast, or only a colon.
    fn colon(&mut self) -> Result<(), Unreadable> {
        let rest = self.rest();
        if rest.starts_with("::") {
            self.take(2);
            return Ok(());
        }
        let name = &rest[1..];
        let name = &name[..name.find(|c| !continues_name(c)).unwrap_or(name.len())];
        if !name.starts_with(starts_name) {
            self.take(1);
            return Ok(());
        }
        let Some((_, bind)) = BINDS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = BINDS.iter().map(|(known, _)| format!(":{known}")).collect();
            let what = format!(
                "there is no bind :{name}; the binds are {} (if this is not a bind, put a space after the colon)",
                known.join(", ")
            );
            return Err(self.unreadable(self.at, &what));
        };
        let end = 1 + name.len();
        let known = self.open.binds.iter().position(|known| known == bind);
        let number = known.unwrap_or_else(|| {
            self.open.binds.push(*bind);
            self.open.binds.len() - 1
        });
        self.open.text.push_str(&format!("${}", number + 1));
        self.at += end;
        Ok(())
    }

    /// Copies the next `length` bytes of the text unchanged.
    fn take(&mut self, length: usize) {
        let end = self.at + length;
        self.open.text.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    fn end_statement(&mut self) -> Result<(), Unreadable> {
        let open = std::mem::replace(&mut self.open, Open::new(self.at));
        if !open.has_code {
            return Ok(());
        }
        let words: Vec<_> = open.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            // Allowed: it goes back to a savepoint of the script's own.
            ["ROLLBACK", "TO"] => {}
            [word @ ("BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT"), ..]
            | [word @ "PREPARE", "TRANSACTION"] => {
                let what = format!(
                    "{word}: all statements are one transaction already, and the end of the run commits it"
                );
                return Err(self.unreadable(open.started, &what));
            }
            _ => {}
        }
        let Open { text, binds, has_question_mark, .. } = open;
        self.statements.push(UserStatement { text: text.trim().to_owned(), binds, has_question_mark });
        Ok(())
    }

    fn unreadable(&self, at: usize, what: &str) -> Unreadable {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Unreadable {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: what.to_owned(),
        }
    }
}

/// The length of the comment at the beginning of `text`. Comments may contain comments.
fn comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// `$` too: `a$b` is one name.
fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn is_tag(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
