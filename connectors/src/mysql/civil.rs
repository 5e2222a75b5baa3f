//! Dates and times of day as MySQL takes them, in UTC.
//!
//! Owns: the way from a count since 1970 to year, month and day (the proleptic Gregorian calendar, after Hinnant, "chrono-compatible
//! low-level date algorithms"). Does not own: time zones; sessions run in UTC. Runs on: plain data.

const MICROS_A_DAY: i64 = 86_400_000_000;
/// Days of 400 years.
const DAYS_AN_ERA: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// Date and time of day, UTC: microseconds since 1970-01-01 00:00. A `datetime(6)` column holds each of the years 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    micros: i64,
}

/// A date: days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    days: i64,
}

/// A date in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CivilDate {
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
}

/// A time of day in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeOfDay {
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
    pub(crate) micros: u32,
}

impl DateTime {
    /// From microseconds since 1970-01-01 00:00 UTC.
    pub const fn from_micros(micros: i64) -> Self {
        Self { micros }
    }

    /// From milliseconds since 1970-01-01 00:00 UTC; what does not fit is as far away as can be.
    pub const fn from_millis(millis: i64) -> Self {
        Self { micros: millis.saturating_mul(1_000) }
    }

    /// Its date.
    pub fn date(self) -> Date {
        Date { days: self.micros.div_euclid(MICROS_A_DAY) }
    }

    pub(crate) fn time(self) -> TimeOfDay {
        let micros = self.micros.rem_euclid(MICROS_A_DAY);
        let part = |divisor: i64, modulus: i64| u8::try_from(micros / divisor % modulus).unwrap_or(0);
        TimeOfDay {
            hour: part(3_600_000_000, 24),
            minute: part(60_000_000, 60),
            second: part(1_000_000, 60),
            micros: u32::try_from(micros % 1_000_000).unwrap_or(0),
        }
    }
}

impl Date {
    /// From days since 1970-01-01.
    pub const fn from_days(days: i64) -> Self {
        Self { days }
    }

    /// Year, month and day; `None` outside the years 1 to 9999.
    pub(crate) fn civil(self) -> Option<CivilDate> {
        let shifted = self.days.checked_add(DAYS_TO_EPOCH)?;
        let era = shifted.div_euclid(DAYS_AN_ERA);
        let day_of_era = shifted.rem_euclid(DAYS_AN_ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        if !(1..=9_999).contains(&year) {
            return None;
        }
        let (year, month, day) = (u16::try_from(year), u8::try_from(month), u8::try_from(day));
        Some(CivilDate { year: year.ok()?, month: month.ok()?, day: day.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn civil(days: i64) -> (u16, u8, u8) {
        let civil = Date::from_days(days).civil().unwrap();
        (civil.year, civil.month, civil.day)
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(47_541), (2100, 3, 1));
        assert_eq!((civil(-719_162), civil(2_932_896)), ((1, 1, 1), (9999, 12, 31)));
        assert_eq!((Date::from_days(-719_163).civil(), Date::from_days(2_932_897).civil()), (None, None));
    }

    #[test]
    fn microseconds_before_1970_fall_on_the_day_before() {
        let late = DateTime::from_micros(-1);
        assert_eq!(late.date(), Date::from_days(-1));
        assert_eq!(late.time(), TimeOfDay { hour: 23, minute: 59, second: 59, micros: 999_999 });
    }
}
