//! Whatever stands in the file: an answer, no panic, and no secret in it.

use proptest::prelude::*;

use super::desk::Desk;

const SECRET: &str = "S3CRET-hunter2";

const FILE: &str = "\
[runner]
namespace = \"a\" # why
[lock]
url = \"redis://u:S3CRET-hunter2@host:6379/0\"
ttl = \"9s\"
[jobs.a]
schedule = \"*/5 * * * *\"
kind = \"command\"
timeout = \"5m\"
params = { argv = [\"对\", \"x\"], env = { TOKEN = \"S3CRET-hunter2\", N = { env = \"NAME\" } } }
[jobs.b]
every = \"5s\"
kind = \"report\"
[jobs.b.params]
password = '''
S3CRET-hunter2'''
list = [
  \"https://u:S3CRET-hunter2@host/\",
  1,
]
";

#[derive(Clone, Debug)]
enum Slip {
    Remove(usize),
    Insert(usize, char),
    Cut(usize),
    Twice(usize),
}

fn slips() -> impl Strategy<Value = Vec<Slip>> {
    let at = 0..FILE.len();
    let letter = prop::sample::select(vec![
        '"', '\'', '=', '[', ']', '{', '}', '.', '#', '\n', '\r', '\t', 'x', '0', '错', '\0',
    ]);
    let slip = prop_oneof![
        at.clone().prop_map(Slip::Remove),
        (at.clone(), letter).prop_map(|(at, letter)| Slip::Insert(at, letter)),
        at.clone().prop_map(Slip::Cut),
        (0..FILE.lines().count()).prop_map(Slip::Twice),
    ];
    prop::collection::vec(slip, 1..4)
}

fn mangle(slips: &[Slip]) -> String {
    let mut text = FILE.to_owned();
    let floor = |text: &str, at: usize| {
        (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    };
    for slip in slips {
        match *slip {
            Slip::Remove(at) => {
                let at = floor(&text, at);
                if at < text.len() {
                    text.remove(at);
                }
            }
            Slip::Insert(at, letter) => text.insert(floor(&text, at), letter),
            Slip::Cut(at) => text.truncate(floor(&text, at)),
            Slip::Twice(line) => {
                let lines: Vec<&str> = text.lines().collect();
                let line = lines.get(line).copied().unwrap_or_default().to_owned();
                text = format!("{}\n{line}\n", text.trim_end());
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mangled_file_gets_an_answer_without_a_secret_in_it(slips in slips()) {
        let text = mangle(&slips);
        let printed = match Desk::with(&text).set("NAME", "value").load() {
            Ok(config) => format!("{config:?}"),
            Err(errors) => errors.to_string(),
        };
        prop_assert!(!printed.contains(SECRET), "{}\n---\n{}", text, printed);
    }

    #[test]
    fn any_text_at_all_gets_an_answer(text in "\\PC{0,60}") {
        let answer = Desk::with(&text).load();
        prop_assert!(answer.is_err(), "a job in {text:?}");
    }
}
