//! Text that people see, without the passwords of addresses in it.
//!
//! Owns: where in an address, also a mistyped one, the password stands. Does not own: the addresses. Runs on: anywhere. Pure.
//!
//! A parser repeats the value that it does not take, and an address may hold a password: terminals are shared, logs are kept.

use std::borrow::Cow;

/// What stands for a password.
const HIDDEN: &str = "***";
/// What ends a word of the text.
const QUOTES: &str = "'\"`";
/// Names of values that are passwords.
const NAMES: [&str; 3] = ["password=", "passwd=", "pwd="];
/// Schemes behind which a path stands: an `@` in it is one of the path.
const PATHS: [&str; 3] = ["sqlite:", "files:", "file:"];

/// The text with the passwords in it replaced, word by word; a word ends at white space or a quote.
///
/// In a word with an `@` that is what stands between the first colon, behind a scheme, and the last `@`: so one with an `@`, a `/` or a colon
/// in it, which should have been encoded, is hidden whole, and so is that of an address whose scheme or slashes are mistyped. In an address
/// without an `@` it is what stands where a port should. And it is the value of `password=`.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed("");
    let mut rest = text;
    while !rest.is_empty() {
        let is_end = |c: char| c.is_whitespace() || QUOTES.contains(c);
        let end = rest.find(is_end).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        shown += hidden_in(word);
        let next = after.find(|c: char| !is_end(c)).unwrap_or(after.len());
        shown += &after[..next];
        rest = &after[next..];
    }
    shown
}

fn hidden_in(word: &str) -> Cow<'_, str> {
    match place(word) {
        Some((start, end)) => format!("{}{HIDDEN}{}", &word[..start], &word[end..]).into(),
        None => word.into(),
    }
}

/// Where in a word the password stands.
fn place(word: &str) -> Option<(usize, usize)> {
    let lower = word.to_ascii_lowercase();
    if let Some(start) = NAMES.iter().find_map(|name| Some(lower.find(name)? + name.len())) {
        let end = word[start..].find(['&', ';']).map_or(word.len(), |end| start + end);
        return Some((start, end)).filter(|(start, end)| start < end);
    }
    let begins = lower.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if PATHS.iter().any(|scheme| begins.starts_with(scheme)) {
        return None;
    }
    let scheme = behind_scheme(word);
    match word.rfind('@').filter(|at| *at >= scheme) {
        Some(at) => {
            // `scheme:user:password@`, or `user:password@` without a scheme.
            let from = |start: usize| word[start..at].find(':').map(|colon| start + colon + 1);
            let start = from(scheme).or_else(|| (!word.contains("://")).then(|| from(0)).flatten())?;
            Some((start, at))
        }
        None if word.contains("://") => not_a_port(word, scheme),
        None => None,
    }
}

/// Behind `scheme:`, or `scheme`, and its slashes; 0 where there is nothing like it.
fn behind_scheme(word: &str) -> usize {
    let name = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '+').unwrap_or(word.len());
    let (_, rest) = word.split_at(name);
    let marks = rest.len() - rest.trim_start_matches([':', '/']).len();
    match word.find("://") {
        Some(scheme) => scheme + "://".len(),
        None if marks > 0 => name + marks,
        None => 0,
    }
}

/// What stands where the ports of an address should, if that is none.
fn not_a_port(word: &str, authority: usize) -> Option<(usize, usize)> {
    let end = word[authority..].find(['/', '?']).map_or(word.len(), |end| authority + end);
    let mut start = authority;
    for server in word[authority..end].split(',') {
        // Colons of an IPv6 address stand in brackets.
        let host = server.rfind(']').unwrap_or(0);
        if let Some(colon) = server[host..].find(':') {
            let port = start + host + colon + 1;
            // What a sentence puts behind an address is not of it.
            let text = word[port..start + server.len()].trim_end_matches(|c: char| !c.is_alphanumeric());
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Some((port, end));
            }
        }
        start += server.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_each_address_is_hidden_and_nothing_else() {
        for (text, shown) in [
            ("no address", "no address"),
            ("mysql://u:p@h:1/d and kafka://h:2/t", "mysql://u:***@h:1/d and kafka://h:2/t"),
            ("value 'mysql://u:p@ss/w:d@h/d?mode=foo' for", "value 'mysql://u:***@h/d?mode=foo' for"),
            ("mysql://u@h/d", "mysql://u@h/d"),
            ("mysql://:p@h", "mysql://:***@h"),
            ("sqlite:a@b", "sqlite:a@b"),
            ("http://[::1]:9/ mail@host:x", "http://[::1]:9/ mail@host:x"),
            ("value 'mysql:/u:p@h/d'", "value 'mysql:/u:***@h/d'"),
            ("mysql//u:p@h", "mysql//u:***@h"),
            ("mysql:u:p@h", "mysql:u:***@h"),
            ("u:p@h/d", "u:***@h/d"),
            ("mysql:u@h", "mysql:***@h"),
            ("mysql://u:p", "mysql://u:***"),
            ("mysql://u:p/d", "mysql://u:***/d"),
            ("kafka://h:1,h2:9092/t, [x://h:1]", "kafka://h:1,h2:9092/t, [x://h:1]"),
            ("mysql://h/d?user=u&password=p&x=1", "mysql://h/d?user=u&password=***&x=1"),
            ("jdbc:mysql://h:3306/d?Password=p", "jdbc:mysql://h:3306/d?Password=***"),
            ("files:/a@b:c@d sqlite:/x:y@z", "files:/a@b:c@d sqlite:/x:y@z"),
            ("order_log_sink[0]: a -> b:c, 12:30", "order_log_sink[0]: a -> b:c, 12:30"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
