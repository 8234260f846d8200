"""Numbers from 2 to 100 in words."""

from __future__ import annotations

FRENCH = (
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix",
    "onze", "douze", "treize", "quatorze", "quinze", "seize",
)  # fmt: skip
FRENCH_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante"}
ENGLISH = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
ENGLISH_TENS = (
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip


def number_in_french(number: int, feminine: bool = False) -> str:
    """As it stands before a noun of that gender: vingt et une pommes."""
    if number == 100:
        return "cent"
    one = "une" if feminine else "un"
    if number < 17:
        return one if number == 1 else FRENCH[number]
    if number < 20:
        return "dix-" + FRENCH[number - 10]
    if number >= 80:
        rest = number - 80
        return "quatre-vingt" + (
            "-" + (one if rest == 1 else number_in_french(rest)) if rest else "s"
        )
    tens, rest = (6, number - 60) if number >= 60 else divmod(number, 10)
    if rest == 0:
        return FRENCH_TENS[tens]
    if rest in (1, 11):
        return f"{FRENCH_TENS[tens]} et {one if rest == 1 else 'onze'}"
    return f"{FRENCH_TENS[tens]}-{number_in_french(rest)}"


def number_in_english(number: int) -> str:
    if number == 100:
        return "one hundred"
    if number < 20:
        return ENGLISH[number]
    tens, rest = divmod(number, 10)
    return ENGLISH_TENS[tens] + (f"-{ENGLISH[rest]}" if rest else "")
