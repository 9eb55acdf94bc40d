//! What the documents and the manifest promise.

use std::path::{Path, PathBuf};

use crate::source::Source;
use crate::{holds, planted};

fn architecture(project: &[Source]) -> Vec<String> {
    let page = project.iter().find(|source| source.path == "ARCHITECTURE.md");
    let Some(page) = page else { return vec!["ARCHITECTURE.md is missing".into()] };
    let lines = page.text.lines().count();
    if lines > 150 {
        vec![page.breach(150, &format!("{lines} lines: nobody reads that; cut"))]
    } else {
        Vec::new()
    }
}

#[test]
fn the_architecture_fits_on_a_page() {
    holds(architecture);
    assert_eq!(planted(architecture, "ARCHITECTURE.md", &"word\n".repeat(151)), 1);
    assert_eq!(planted(architecture, "README.md", ""), 1);
}

/// `path/to/test.rs::name` in a document has to be a test.
fn promises(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.path.ends_with(".md")) {
        for (index, line) in source.text.lines().enumerate() {
            for quoted in line.split('`').skip(1).step_by(2) {
                let Some((file, name)) = quoted.split_once(".rs::") else { continue };
                let (file, name) = (format!("{file}.rs"), name.rsplit("::").next().unwrap_or_default());
                let test = project.iter().find(|source| source.path == file);
                let is_in =
                    |test: &Source| test.rust().functions.iter().any(|function| function.name == name);
                if !test.is_some_and(is_in) {
                    breaches.push(source.breach(index + 1, &format!("there is no test {quoted}")));
                }
            }
        }
    }
    breaches
}

#[test]
fn every_test_that_a_document_names_exists() {
    holds(promises);
    let readme =
        Source::new("README.md", "It runs once: `tests/replicas.rs::once`, `tests/replicas.rs::twice`.");
    let tests = Source::new("tests/replicas.rs", "#[test]\nfn once() {}");
    assert_eq!(promises(&[readme, tests]).len(), 1);
}

/// `[text](target)` in a document, where the target is a file of the project: it has to be there.
fn links(project: &[Source]) -> Vec<String> {
    let exists = |path: &Path| {
        let path = path.to_str().unwrap();
        let below = format!("{path}/");
        project.iter().any(|source| source.path == path || source.path.starts_with(&below))
    };
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.path.ends_with(".md")) {
        let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
        for (index, line) in source.text.lines().enumerate() {
            for rest in line.split("](").skip(1) {
                let target = rest.split([')', '#']).next().unwrap_or_default();
                let leads_elsewhere = target.is_empty() || target.contains("://");
                if !leads_elsewhere && !exists(&resolved(folder, target)) {
                    breaches.push(source.breach(index + 1, &format!("{target} is not there")));
                }
            }
        }
    }
    breaches
}

/// `docs` and `../README.md` → `README.md`.
fn resolved(folder: &Path, target: &str) -> PathBuf {
    let mut path = folder.to_path_buf();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(path.pop()),
            "." => {}
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    holds(links);
    let linked = |target: &str| {
        let page = Source::new("docs/page.md", &format!("See [it]({target})."));
        let there = [Source::new("README.md", ""), Source::new("docs/adr/0001-two.md", "")];
        links(&there.into_iter().chain([page]).collect::<Vec<_>>()).len()
    };
    for good in
        ["../README.md", "adr", "adr/", "adr/0001-two.md#why", "page.md", "#here", "https://a.example/b"]
    {
        assert_eq!(linked(good), 0, "{good}");
    }
    for bad in ["README.md", "../docs/gone.md", "ad"] {
        assert_eq!(linked(bad), 1, "{bad}");
    }
}

/// Without a line in Cargo.toml a `main.rs` below `tests/` is never compiled. What lies beside the folders of
/// the test programs belongs to none of them.
fn wiring(project: &[Source]) -> Vec<String> {
    let manifest = project.iter().find(|source| source.path == "crates/runner/Cargo.toml");
    let manifest = manifest.map_or("", |manifest| manifest.text.as_str());
    let is_root = |source: &&Source| {
        let below = source.path.strip_prefix("tests/").filter(|_| source.is_rust());
        below.is_some_and(|below| !below.contains('/') || below.ends_with("/main.rs"))
    };
    let unwired = project
        .iter()
        .filter(is_root)
        .filter(|source| !manifest.contains(&format!("../../{}\"", source.path)));
    unwired
        .map(|source| source.breach(1, "give it a [[test]] in crates/runner/Cargo.toml, or it never runs"))
        .collect()
}

#[test]
fn every_integration_test_is_wired() {
    holds(wiring);
    assert_eq!(planted(wiring, "tests/forgotten.rs", ""), 1);
    assert_eq!(planted(wiring, "tests/forgotten/main.rs", ""), 1);
    assert_eq!(planted(wiring, "tests/house/source.rs", ""), 0);
}
