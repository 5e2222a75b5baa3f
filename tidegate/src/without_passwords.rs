//! Text that people see, without the passwords of addresses in it.
//!
//! Owns: where in `scheme://user:password@host` the password stands. Does not own: the addresses. Runs on: anywhere. Pure.
//!
//! A parser repeats the value that it does not take, and an address may hold a password: terminals are shared, logs are kept.

use std::borrow::Cow;

/// What stands for a password.
const HIDDEN: &str = "***";

/// The text with the password of each address in it replaced. An address ends at white space or a quote; a password is what stands between
/// the first colon and the last `@`, so that one with an `@`, a `/` or a colon in it, which should have been encoded, is hidden whole.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed("");
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let (before, address) = rest.split_at(scheme + "://".len());
        let end = address.find(|c: char| c.is_whitespace() || "'\"`".contains(c)).unwrap_or(address.len());
        let (address, after) = address.split_at(end);
        shown += before;
        match address.rfind('@').and_then(|at| Some((address[..at].find(':')?, at))) {
            Some((colon, at)) => {
                shown += &address[..=colon];
                shown += HIDDEN;
                shown += &address[at..];
            }
            None => shown += address,
        }
        rest = after;
    }
    shown += rest;
    shown
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
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
