//! Aligned tables on a terminal.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

/// What stands between two columns.
const GAP: &str = "  ";

/// Rows under the titles of their columns.
#[derive(Debug)]
pub(super) struct TextTable<const N: usize> {
    titles: [&'static str; N],
    rows: Vec<[String; N]>,
    shows_empty_columns: bool,
}

impl<const N: usize> TextTable<N> {
    /// A table without rows.
    pub(super) const fn new(titles: [&'static str; N]) -> Self {
        Self { titles, rows: Vec::new(), shows_empty_columns: true }
    }

    /// Leaves out a column that is empty in every row.
    pub(super) fn without_empty_columns(self) -> Self {
        Self { shows_empty_columns: false, ..self }
    }

    /// Adds a row. Each cell is made [`legible`].
    pub(super) fn add(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| legible(&cell)));
    }

    /// Whether it has no rows.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the titles and the rows.
    ///
    /// # Errors
    /// When `out` does not take them.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let shown: Vec<usize> = (0..N)
            .filter(|column| self.shows_empty_columns || self.rows.iter().any(|row| !row[*column].is_empty()))
            .collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].width());
            cells.chain([self.titles[column].width()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = shown.iter().map(|column| width(*column)).collect();
        let mut print = |row: [&str; N]| {
            let mut line = String::new();
            for (column, width) in shown.iter().zip(&widths) {
                let cell = row[*column];
                line.push_str(cell);
                line.push_str(&" ".repeat(width - cell.width()));
                line.push_str(GAP);
            }
            writeln!(out, "{}", line.trim_end())
        };
        print(self.titles)?;
        self.rows.iter().try_for_each(|row| print(row.each_ref().map(String::as_str)))
    }
}

/// Text of others, fit for one line of a terminal. A job's output or a description may hold characters
/// that begin a line, move the cursor, change colours or reverse the order of what follows: each of them
/// becomes a space.
pub(super) fn legible(text: &str) -> String {
    let breaks_the_line = |c: char| {
        let separator = matches!(c, '\u{2028}' | '\u{2029}');
        let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || separator || direction
    };
    text.chars().map(|c| if breaks_the_line(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed<const N: usize>(mut table: TextTable<N>, rows: &[[&str; N]]) -> String {
        for row in rows {
            table.add(row.map(str::to_owned));
        }
        let mut out = Vec::new();
        table.print(&mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        let rows = [["報告", "ok"], ["e\u{301}te\u{301}", "late"], ["plain", ""]];
        let text = "job    state\n報告   ok\ne\u{301}te\u{301}    late\nplain\n";
        assert_eq!(printed(TextTable::new(["job", "state"]), &rows), text);
    }

    #[test]
    fn an_empty_column_is_left_out_where_the_command_asks_for_it() {
        let rows = [["a", "", "1"], ["b", "", "2"]];
        assert_eq!(
            printed(TextTable::new(["x", "note", "n"]), &rows),
            "x  note  n\na        1\nb        2\n"
        );
        let table = TextTable::new(["x", "note", "n"]).without_empty_columns();
        assert_eq!(printed(table, &rows), "x  n\na  1\nb  2\n");
    }

    #[test]
    fn no_cell_can_steer_the_terminal_or_begin_a_line() {
        assert_eq!(legible("\u{1b}[31mred\u{7}\r\n"), " [31mred   ");
        assert_eq!(legible("a\u{202e}b\u{2066}c\u{2028}d"), "a b c d");
        assert_eq!(printed(TextTable::new(["error"]), &[["a\nb"]]), "error\na b\n");
    }
}
