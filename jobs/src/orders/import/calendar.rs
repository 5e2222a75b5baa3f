//! Days of the Gregorian calendar as event times.
//!
//! Owns: the count of days since 1970-01-01.
//! Does not own: time zones: midnight is UTC.
//! Runs on: anywhere. Pure.

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Days before each month in a year that is no leap year.
const DAYS_BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Milliseconds from 1970-01-01 to the given day at 00:00 UTC, or `None` when there is no such day. Years 1 to 9999.
pub(crate) fn midnight_ms(year: i64, month: u64, day: u64) -> Option<i64> {
    if !(1..=9_999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let before_year = |year: i64| {
        let past = year - 1;
        past * 365 + past / 4 - past / 100 + past / 400
    };
    let leap_day = i64::from(month > 2 && is_leap(year));
    let in_year = DAYS_BEFORE_MONTH[(month - 1) as usize] + leap_day + day.cast_signed() - 1;
    Some((before_year(year) - before_year(1_970) + in_year) * DAY_MS)
}

fn days_in_month(year: i64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_known_times() {
        assert_eq!(midnight_ms(1_970, 1, 1), Some(0));
        assert_eq!(midnight_ms(1_969, 12, 31), Some(-DAY_MS));
        assert_eq!(midnight_ms(1_997, 1, 1), Some(852_076_800_000));
        assert_eq!(midnight_ms(1_998, 6, 30), Some(899_164_800_000));
        assert_eq!(midnight_ms(2_000, 2, 29), Some(951_782_400_000));
        assert_eq!(midnight_ms(2_024, 12, 31), Some(1_735_603_200_000));
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut last = midnight_ms(1_896, 12, 31).unwrap();
        for year in 1_897..=2_104 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    let time = midnight_ms(year, month, day).unwrap();
                    assert_eq!(time - last, DAY_MS, "{year}-{month}-{day}");
                    last = time;
                }
            }
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for (year, month, day) in
            [(1_997, 2, 29), (1_900, 2, 29), (1_997, 4, 31), (1_997, 0, 1), (1_997, 13, 1), (1_997, 1, 0)]
        {
            assert_eq!(midnight_ms(year, month, day), None, "{year}-{month}-{day}");
        }
    }
}
