//! Which texts are names of buckets: folders inside the output folder, one level deep.
//!
//! Owns: the rule and its words. Does not own: which record goes where. Runs on: anywhere. Pure.

/// The longest name.
pub const BUCKET_BYTES_MAX: usize = 100;

/// Why a bucket is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketRefusal {
    /// Nothing, where a name has to be.
    #[error("it is empty")]
    Empty,
    /// Too long.
    #[error("it has {bytes} bytes, and {BUCKET_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Hidden, or one of `.` and `..`.
    #[error("it begins with a dot")]
    Dot,
    /// A sign that is not allowed.
    #[error("it has {sign:?} in it, and allowed are letters, digits and `_ - . = + @`")]
    Sign {
        /// The first of them.
        sign: char,
    },
}

/// Refuses what is no simple folder name.
pub(crate) fn check_bucket(name: &str) -> Result<(), BucketRefusal> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-.=+@".contains(sign);
    if name.is_empty() {
        return Err(BucketRefusal::Empty);
    }
    if name.len() > BUCKET_BYTES_MAX {
        return Err(BucketRefusal::TooLong { bytes: name.len() });
    }
    if name.starts_with('.') {
        return Err(BucketRefusal::Dot);
    }
    match name.chars().find(|sign| !is_plain(*sign)) {
        Some(sign) => Err(BucketRefusal::Sign { sign }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_simple_folder_names_are_buckets() {
        for fine in ["a", "day=2026-11-30", "user_7", "a.b", "_x", &"x".repeat(100)] {
            assert_eq!(check_bucket(fine), Ok(()), "{fine}");
        }
        assert_eq!(check_bucket(""), Err(BucketRefusal::Empty));
        assert_eq!(check_bucket(".."), Err(BucketRefusal::Dot));
        assert_eq!(check_bucket(".tidegate"), Err(BucketRefusal::Dot));
        assert_eq!(check_bucket("a/b"), Err(BucketRefusal::Sign { sign: '/' }));
        assert_eq!(check_bucket("a\0"), Err(BucketRefusal::Sign { sign: '\0' }));
        assert_eq!(check_bucket("é"), Err(BucketRefusal::Sign { sign: 'é' }));
        assert_eq!(check_bucket(&"x".repeat(101)), Err(BucketRefusal::TooLong { bytes: 101 }));
    }
}
