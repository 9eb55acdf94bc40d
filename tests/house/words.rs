//! What must not be written anywhere.

use crate::source::Source;
use crate::{holds, planted};

fn unfinished(project: &[Source]) -> Vec<String> {
    // Put together here, so that this file does not break its own rule.
    let words =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["#[ig", "nore"], ["todo", "!("], ["unimplemented", "!("]];
    forbidden(project, &words, "finish it, or leave it out")
}

fn machines(project: &[Source]) -> Vec<String> {
    let words = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/Us", "ers/"]];
    forbidden(project, &words, "a path of one machine: the project runs on others too")
}

fn forbidden(project: &[Source], words: &[[&str; 2]], advice: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in project {
        for word in words {
            let word = word.concat();
            let advice = format!("{word:?}: {advice}");
            breaches.extend(source.breaches(|line| line.contains(&word), &advice));
        }
    }
    breaches
}

#[test]
fn nothing_is_left_for_later() {
    holds(unfinished);
    let planted_word = ["// TO", "DO: more"].concat();
    assert_eq!(planted(unfinished, "README.md", &planted_word), 1);
    assert_eq!(planted(unfinished, "crates/runner/src/job.rs", &["#[ig", "nore = \"slow\"]"].concat()), 1);
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    holds(machines);
    assert_eq!(planted(machines, "scripts/test", &["cd /ho", "me/me"].concat()), 1);
}
