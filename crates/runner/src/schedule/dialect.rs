//! Cron dialects: which expressions are ours, and hints for those of other schedulers.

use super::ScheduleError;

const EXPECTED: &str =
    "use 5 fields (minute hour day-of-month month weekday) or 6 (a second in front of them)";

/// The fields of `expr`, without the second if it has none.
pub(super) fn fields(expr: &str) -> Result<Vec<&str>, ScheduleError> {
    let expr = expr.trim();
    let words: Vec<&str> = expr.split_whitespace().collect();
    let first =
        *words.first().ok_or_else(|| ScheduleError::new(format!("the schedule is empty; {EXPECTED}")))?;

    if let Some(zone) = first.strip_prefix("CRON_TZ=").or_else(|| first.strip_prefix("TZ=")) {
        return Err(ScheduleError::new(format!(
            "{first:?} is not part of a schedule; write timezone = {zone:?} beside it"
        )));
    }
    if first.starts_with('@') {
        return nickname(expr, &words);
    }
    let shape = expr.to_ascii_lowercase();
    if shape.starts_with("cron(") || shape.starts_with("rate(") {
        return Err(ScheduleError::new(format!(
            "{expr:?} looks like AWS EventBridge; drop the brackets, and {EXPECTED}"
        )));
    }
    if words.iter().any(|word| word.contains(':') || word.contains("*-*")) {
        return Err(ScheduleError::new(format!("{expr:?} looks like a systemd calendar; {EXPECTED}")));
    }
    match words.len() {
        5 => Ok(words),
        6 if is_command(words[5]) => Err(command(&words)),
        6 => Ok(words),
        found => Err(miscounted(found, &words)),
    }
}

fn nickname<'a>(expr: &str, words: &[&'a str]) -> Result<Vec<&'a str>, ScheduleError> {
    let meaning = match expr.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        "@reboot" => {
            return Err(ScheduleError::new(
                "@reboot names no time: a firing does not depend on the start of a process; write for example every = \"1h\"",
            ));
        }
        other if words[0].eq_ignore_ascii_case("@every") => {
            let period = other.split_whitespace().nth(1).unwrap_or("30s").to_owned();
            return Err(ScheduleError::new(format!(
                "{expr:?} is not a cron expression; write every = {period:?} instead of schedule"
            )));
        }
        _ => {
            return Err(ScheduleError::new(format!(
                "{expr:?} is not known; use @yearly, @monthly, @weekly, @daily or @hourly"
            )));
        }
    };
    Ok(meaning.split(' ').collect())
}

fn miscounted(found: usize, words: &[&str]) -> ScheduleError {
    if words.iter().skip(5).any(|word| is_command(word)) {
        return command(words);
    }
    let looks = match found {
        7 if is_year(words[6]) => " (it looks like Quartz, with a year at the end: drop the year)",
        7 => " (it looks like Quartz, with a year at the end)",
        4 => " (it looks like a crontab entry with one field missing)",
        1 => " (it does not look like cron)",
        _ => "",
    };
    let plural = if found == 1 { "field" } else { "fields" };
    ScheduleError::new(format!("found {found} {plural}{looks}; {EXPECTED}"))
}

fn command(words: &[&str]) -> ScheduleError {
    ScheduleError::new(format!(
        "found {} words (it looks like a crontab line with a user or a command from {:?} on: write the command in params); {EXPECTED}",
        words.len(),
        words[5],
    ))
}

/// Whether `word` can only be a user or a program: it has letters that no field has.
fn is_command(word: &str) -> bool {
    let names = |item: &str| {
        let head = item.get(..3).unwrap_or(item).to_ascii_uppercase();
        ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"].contains(&head.as_str())
    };
    word.starts_with(['/', '.', '~'])
        || word
            .split([',', '-', '/', '#'])
            .any(|item| item.len() > 1 && item.bytes().all(|b| b.is_ascii_alphabetic()) && !names(item))
}

fn is_year(word: &str) -> bool {
    word == "*" || (word.len() >= 4 && word.bytes().take(4).all(|byte| byte.is_ascii_digit()))
}
