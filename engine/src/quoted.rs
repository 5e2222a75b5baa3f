//! A word of a command line, as a shell wants it.
//!
//! Owns: when quotes are needed. Does not own: the commands. Runs on: anywhere. Pure.

use tidegate_state::local_folder;

/// The word, in single quotes if a shell would take it for anything else than one word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A checkpoint folder, named as a person does on a command line: a local one by its path.
pub fn folder_of(url: &str) -> String {
    local_folder(url).map_or_else(|| url.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_split_or_change_it() {
        assert_eq!(quoted("/var/lib/tidegate-1"), "/var/lib/tidegate-1");
        assert_eq!(quoted("cks long"), "'cks long'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
