//! The known name that looks most like a mistyped one.
//!
//! Owns: how alike two names must be. Does not own: the names. Runs on: anywhere. Pure.

/// Names less alike than this (1: the same) are no suggestion.
const LIKENESS_MIN: f64 = 0.7;

/// The known name that looks most like `name`, if one does.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase().replace('_', "-");
    let alike =
        |known: &str| strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase().replace('_', "-"));
    let scored = known.into_iter().map(|known| (alike(known), known));
    let best = scored.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 >= LIKENESS_MIN).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let known = ["parallelism", "max-parallelism", "mode"];
        assert_eq!(nearest("paralelism", known), Some("parallelism"));
        assert_eq!(nearest("MAX_PARALLELISM", known), Some("max-parallelism"));
        assert_eq!(nearest("colour", known), None);
    }
}
