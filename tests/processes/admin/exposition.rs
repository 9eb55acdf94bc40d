//! Prometheus' text format, version 0.0.4, read by its rules and nothing more lenient.

use std::collections::{BTreeMap, BTreeSet};

/// Labels of one series, by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// Everything on one page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) families: BTreeMap<String, Family>,
}

/// One metric.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) help: String,
    pub(crate) kind: String,
    /// The name as it stands in the line (with `_bucket` and the like), labels, value.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// The first rule that is broken, and the line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut page = Self::default();
        let mut now = None;
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the last line has no end".into());
        }
        for line in text.lines().filter(|line| !line.is_empty()) {
            page.line(line, &mut now).map_err(|problem| format!("{problem}: {line}"))?;
        }
        for (name, family) in &page.families {
            family.check(name)?;
        }
        Ok(page)
    }

    fn line(&mut self, line: &str, now: &mut Option<String>) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (keyword, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let rest = words.next().unwrap_or_default();
            if !matches!(keyword, "HELP" | "TYPE") {
                return Ok(());
            }
            is_name(name, true)?;
            let fresh = now.as_deref() != Some(name);
            if fresh && self.families.contains_key(name) {
                return Err("a metric's lines do not stand together".into());
            }
            *now = Some(name.to_owned());
            let family = self.families.entry(name.to_owned()).or_default();
            let field = if keyword == "HELP" { &mut family.help } else { &mut family.kind };
            if !field.is_empty() {
                return Err(format!("a second {keyword}"));
            }
            if keyword == "TYPE" && !matches!(rest, "counter" | "gauge" | "histogram") {
                return Err("not a type".into());
            }
            if keyword == "TYPE" && !family.samples.is_empty() {
                return Err("TYPE after a sample".into());
            }
            *field = if keyword == "HELP" { unescape(rest, &['\\'])? } else { rest.to_owned() };
            return Ok(());
        }
        if line.starts_with('#') {
            return Err("neither a comment nor a sample".into());
        }
        let (name, labels, value) = sample(line)?;
        let of = now.clone().ok_or("a sample before any TYPE")?;
        let family = self.families.entry(of.clone()).or_default();
        let suffix = name.strip_prefix(of.as_str()).ok_or("a sample of another metric")?;
        let allowed: &[&str] =
            if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        if !allowed.contains(&suffix) {
            return Err(format!("no sample of a {:?}", family.kind));
        }
        family.samples.push((name, labels, value));
        Ok(())
    }

    /// The sum over all lines of this name that have these labels; for a histogram the name ends in
    /// `_count`, `_sum` or `_bucket`.
    #[track_caller]
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let mut samples = self
            .families
            .values()
            .flat_map(|family| &family.samples)
            .filter(|(line, ..)| line == name)
            .peekable();
        assert!(samples.peek().is_some(), "{name} is not on the page");
        let wanted = |of: &Labels| {
            labels.iter().all(|(name, value)| of.get(*name).is_some_and(|label| label == value))
        };
        samples.filter(|(_, of, _)| wanted(of)).map(|sample| sample.2).sum()
    }
}

impl Family {
    fn check(&self, name: &str) -> Result<(), String> {
        if self.help.is_empty() || self.kind.is_empty() {
            return Err(format!("{name} lacks HELP or TYPE"));
        }
        let mut seen = BTreeSet::new();
        for (line, labels, value) in &self.samples {
            if !seen.insert((line, labels)) {
                return Err(format!("{line}{labels:?} stands there twice"));
            }
            if self.kind == "counter" && (*value < 0.0 || !value.is_finite()) {
                return Err(format!("{line}{labels:?} counts {value}"));
            }
        }
        if self.kind == "histogram" { self.check_histogram(name) } else { Ok(()) }
    }

    /// Buckets ascend, counts never fall, `+Inf` is the count, and sum and count are there.
    fn check_histogram(&self, name: &str) -> Result<(), String> {
        let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for (line, labels, value) in self.samples.iter().filter(|(line, ..)| line.ends_with("_bucket")) {
            let mut labels = labels.clone();
            let le = labels.remove("le").ok_or_else(|| format!("{line} without le"))?;
            series.entry(labels).or_default().push((number(&le)?, *value));
        }
        for (line, labels, _) in &self.samples {
            if !line.ends_with("_bucket") && !series.contains_key(labels) {
                return Err(format!("{line}{labels:?} has no buckets"));
            }
        }
        for (labels, buckets) in series {
            let falls = |pair: &[(f64, f64)]| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1;
            if buckets.windows(2).any(falls) {
                return Err(format!("buckets of {name}{labels:?} do not ascend: {buckets:?}"));
            }
            let one = |suffix: &str| {
                let line = format!("{name}{suffix}");
                let found = self.samples.iter().find(|(of, with, _)| *of == line && *with == labels);
                found.map(|sample| sample.2).ok_or_else(|| format!("{line}{labels:?} is missing"))
            };
            let (count, _) = (one("_count")?, one("_sum")?);
            if buckets.last() != Some(&(f64::INFINITY, count)) {
                return Err(format!("the last bucket of {name}{labels:?} is not the count {count}"));
            }
        }
        Ok(())
    }
}

fn sample(line: &str) -> Result<(String, Labels, f64), String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    is_name(name, true)?;
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
            is_name(label, false)?;
            let mut escaped = false;
            let quote = after.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let (value, after) = after.split_at(quote.ok_or("a label without an end")?);
            if labels.insert(label.to_owned(), unescape(value, &['\\', '"'])?).is_some() {
                return Err("a label stands there twice".into());
            }
            rest = &after[1..];
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None if rest.starts_with('}') => {}
                None => return Err("labels without a comma".into()),
            }
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').ok_or("no blank before the value")?;
    Ok((name.to_owned(), labels, number(value)?))
}

/// Backslash, line feed and what else `special` names are written with a backslash before them.
fn unescape(text: &str, special: &[char]) -> Result<String, String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => plain.push('\n'),
                Some(c) if special.contains(&c) => plain.push(c),
                other => return Err(format!("an escape of {other:?}")),
            },
            '"' if special.contains(&'"') => return Err("a quote within a label".into()),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            text.parse().map_err(|_| format!("{text:?} is no number"))
        }
        _ => Err(format!("{text:?} is no number")),
    }
}

fn is_name(name: &str, colons: bool) -> Result<(), String> {
    let head = |c: char| c.is_ascii_alphabetic() || c == '_' || colons && c == ':';
    let fine = name.starts_with(head) && name.chars().all(|c| head(c) || c.is_ascii_digit());
    if fine { Ok(()) } else { Err(format!("{name:?} is no name")) }
}

#[test]
fn a_page_by_the_rules_is_read_and_every_broken_rule_is_found() {
    let good = "# HELP a_total What \\\\ it \\n is.\n# TYPE a_total counter\n\
                a_total{job=\"x\",why=\"say \\\"no\\\"\\n\"} 3\na_total 0\n\n\
                # HELP h H.\n# TYPE h histogram\n\
                h_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 7.5\nh_count 2\n";
    let page = Page::parse(good).unwrap();
    assert_eq!(page.sum("a_total", &[]), 3.0);
    assert_eq!(page.sum("a_total", &[("why", "say \"no\"\n")]), 3.0);
    assert_eq!(
        (page.sum("h_count", &[]), page.families["a_total"].help.as_str()),
        (2.0, "What \\ it \n is.")
    );
    for (from, to) in [
        ("h_count 2\n", "h_count 2"),
        ("h_count 2\n", "h_count 3\n"),
        ("h_count 2\n", ""),
        ("h_sum 7.5\n", ""),
        ("le=\"+Inf\"", "le=\"0.7\""),
        ("le=\"+Inf\"", "le=\"inf\""),
        ("le=\"0.5\"} 1", "le=\"0.5\"} 3"),
        ("h_bucket{le=\"0.5\"} 1\n", "h_bucket 1\n"),
        ("# TYPE h histogram", "# TYPE h hystogram"),
        ("# TYPE a_total counter\n", ""),
        ("# HELP h H.\n", ""),
        ("a_total 0", "a_total -1"),
        ("a_total 0", "a_total"),
        ("a_total 0", "a_total  0"),
        ("a_total 0", "a_total zero"),
        ("a_total 0", "b_total 0"),
        ("a_total 0", "a_total{job=\"x\",why=\"say \\\"no\\\"\\n\"} 4"),
        ("job=\"x\",", "job=\"x\" "),
        ("job=\"x\"", "j-b=\"x\""),
        ("job=\"x\"", "job=\"\\x\""),
        ("job=\"x\"", "why=\"x\""),
        ("h_count 2\n", "h_count 2\n# TYPE a_total counter\n"),
    ] {
        assert!(good.contains(from), "{from}");
        assert!(Page::parse(&good.replacen(from, to, 1)).is_err(), "{from} -> {to} was read");
    }
}
