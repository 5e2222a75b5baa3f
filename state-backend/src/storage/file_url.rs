//! Folders on local disk by their URLs.
//!
//! RFC 8089: `file:///absolute/path`, with an optional `localhost` in front of the path, and bytes written as `%XX`. A relative path has
//! no such URL: `file://a/b` is the folder `/b` of the host `a`, and almost always a slash that was forgotten.
//!
//! Owns: their reading. Does not own: opening (see [`super::open`]). Runs on: pure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The folder on local disk that a plain path or a `file://` URL names; `None` for other stores and for a URL that is none.
pub fn local_folder(url: &str) -> Option<PathBuf> {
    match url.split_once("://") {
        None => Some(PathBuf::from(url)),
        Some(("file", rest)) => path(rest).ok(),
        Some(_) => None,
    }
}

/// The path in what follows `file://`, or what is wrong with it.
pub(super) fn path(rest: &str) -> Result<PathBuf, &'static str> {
    let path = match rest.strip_prefix("localhost") {
        Some(path) if path.starts_with('/') => path,
        _ => rest,
    };
    match path {
        "" => Err("it names no folder; write file:///absolute/path or a plain path"),
        _ if !path.starts_with('/') => Err(
            "file:// takes an absolute path, with three slashes: write file:///absolute/path, or a plain path",
        ),
        _ => decoded(path).map(|bytes| PathBuf::from(OsString::from_vec(bytes))),
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        match digit().zip(digit()) {
            Some((high, low)) if (high, low) != (0, 0) => decoded.push((high * 16 + low) as u8),
            _ => {
                return Err(
                    "in a file:// URL % stands before two hexadecimal digits; write %25 for itself, or a plain path",
                );
            }
        }
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_url_names_an_absolute_folder_and_its_bytes_are_decoded() {
        for (url, folder) in [
            ("file:///x/ck", Some("/x/ck")),
            ("file://localhost/x/ck", Some("/x/ck")),
            ("file:///x/ck%20y%c3%a9%25", Some("/x/ck y\u{e9}%")),
            ("ck%20y", Some("ck%20y")),
            ("a/b", Some("a/b")),
            ("file://tmp/ck", None),
            ("file://localhosts/ck", None),
            ("file://", None),
            ("file:///x/100%", None),
            ("file:///x/%zz", None),
            ("file:///x/%00", None),
            ("s3://bucket/x", None),
        ] {
            assert_eq!(local_folder(url), folder.map(PathBuf::from), "{url}");
        }
    }
}
