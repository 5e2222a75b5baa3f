//! The columns of a table's key, as an author names them.
//!
//! Owns: the forms in which they can be given. Does not own: whether the table has them. Runs on: plain data.

/// One column name, or several, as a key.
pub trait KeyColumns {
    /// The names, in order.
    fn into_names(self) -> Vec<String>;
}

impl KeyColumns for &str {
    fn into_names(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl<const N: usize> KeyColumns for [&str; N] {
    fn into_names(self) -> Vec<String> {
        self.into_iter().map(str::to_owned).collect()
    }
}

impl KeyColumns for Vec<String> {
    fn into_names(self) -> Vec<String> {
        self
    }
}
