//! Numbers as people read them.
//!
//! Owns: thousands separators, one and many.
//! Does not own: numbers for machines (`--json` prints them bare).
//! Runs on: anywhere. Pure.

/// `69659` as `69,659`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 checkpoint`, `2 checkpoints`, `1,000 checkpoints`: the noun takes an `s` but for one.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::{counted, grouped};

    #[test]
    fn one_thing_is_no_things() {
        let texts = [0, 1, 2, 1_000].map(|number| counted(number, "order"));
        assert_eq!(texts, ["0 orders", "1 order", "2 orders", "1,000 orders"]);
    }

    #[test]
    fn every_third_digit_from_the_right_gets_a_comma() {
        let cases =
            [(0, "0"), (999, "999"), (1_000, "1,000"), (69_659, "69,659"), (250_031_563, "250,031,563")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
