//! `XA RECOVER` on both servers.
//!
//! MariaDB answers with bytes. MySQL answers with text, which breaks where a name is none, so it is asked for hexadecimal digits
//! (`CONVERT XID`); and it wants the right `XA_RECOVER_ADMIN` (else 1401).
//!
//! Owns: asking and reading. Does not own: whose a branch is (see [`super::Xid`]). Runs on: the I/O side.

use super::xid::Xid;
use super::{Connection, MysqlError, ServerKind};

/// `XAER_NOTA`: no such branch, or none for this session.
pub(crate) const NOT_A_BRANCH: u16 = 1397;

/// Every prepared branch on the server, whoever's it is, attached to a session or not.
///
/// # Errors
/// [`MysqlError`]: a right is missing (MySQL), say.
pub async fn prepared_branches(connection: &mut Connection) -> Result<Vec<Xid>, MysqlError> {
    let doing = "asking for prepared branches (XA RECOVER)";
    let server = connection.server();
    let sql = match server {
        ServerKind::MariaDb => "XA RECOVER",
        ServerKind::MySql => "XA RECOVER CONVERT XID",
    };
    let mut found = Vec::new();
    for row in connection.rows(doing, sql, Vec::new()).await? {
        let parts: (i64, usize, usize, Vec<u8>) = connection.only_row(doing, vec![row])?;
        // A name that cannot be taken apart is none of ours.
        found.extend(xid_of(server, parts));
    }
    Ok(found)
}

fn xid_of(server: ServerKind, parts: (i64, usize, usize, Vec<u8>)) -> Option<Xid> {
    let (format_id, gtrid_bytes, bqual_bytes, data) = parts;
    let data = match server {
        ServerKind::MariaDb => data,
        ServerKind::MySql => unhex(&data)?,
    };
    if data.len() != gtrid_bytes.checked_add(bqual_bytes)? {
        return None;
    }
    let (gtrid, bqual) = data.split_at(gtrid_bytes);
    let format_id = u32::try_from(format_id).ok()?;
    Some(Xid { gtrid: gtrid.to_vec(), bqual: bqual.to_vec(), format_id })
}

/// `0x6162` as bytes.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    if digits.len() % 2 != 0 {
        return None;
    }
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_servers_answers_are_read() {
        let expected = Some(Xid { gtrid: b"ab".to_vec(), bqual: vec![0xff], format_id: 7 });
        assert_eq!(xid_of(ServerKind::MariaDb, (7, 2, 1, vec![b'a', b'b', 0xff])), expected);
        assert_eq!(xid_of(ServerKind::MySql, (7, 2, 1, b"0x6162FF".to_vec())), expected);
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_passed_over() {
        assert_eq!(xid_of(ServerKind::MariaDb, (1, 2, 2, b"abc".to_vec())), None);
        assert_eq!(xid_of(ServerKind::MariaDb, (-1, 1, 2, b"abc".to_vec())), None);
        for data in ["6162", "0x616", "0xzz"] {
            assert_eq!(xid_of(ServerKind::MySql, (1, 1, 1, data.as_bytes().to_vec())), None, "{data}");
        }
    }
}
