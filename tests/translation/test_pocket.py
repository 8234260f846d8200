"""The pocket corpus: its French against conjugation tables and grammar, its English, its sizes."""

import re
from random import Random

import pytest

from regard.translation import pocket
from regard.translation.pocket import _grammar as grammar
from regard.translation.pocket import _lexicon as lexicon
from regard.translation.pocket._numbers import number_in_english, number_in_french
from regard.translation.pocket._sentences import sentence
from regard.translation.pocket._writing import english, french

VERBS = {
    verb.infinitive: verb
    for verb in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE, *lexicon.DITRANSITIVE, lexicon.GO)
}


@pytest.mark.parametrize(
    ("infinitive", "tense", "person", "form"),
    [  # from conjugation tables
        ("manger", "present", grammar.NOUS, "mangeons"),
        ("manger", "imperfect", grammar.NOUS, "mangions"),
        ("manger", "imperfect", grammar.IL, "mangeait"),
        ("acheter", "present", grammar.JE, "achète"),
        ("acheter", "present", grammar.VOUS, "achetez"),
        ("acheter", "future", grammar.JE, "achèterai"),
        ("appeler", "present", grammar.ILS, "appellent"),
        ("appeler", "conditional", grammar.TU, "appellerais"),
        ("finir", "present", grammar.ILS, "finissent"),
        ("finir", "imperfect", grammar.TU, "finissais"),
        ("vendre", "present", grammar.IL, "vend"),
        ("perdre", "future", grammar.NOUS, "perdrons"),
        ("voir", "future", grammar.IL, "verra"),
        ("boire", "present", grammar.ILS, "boivent"),
        ("boire", "imperfect", grammar.JE, "buvais"),
        ("prendre", "present", grammar.ILS, "prennent"),
        ("recevoir", "imperfect", grammar.VOUS, "receviez"),
        ("envoyer", "future", grammar.JE, "enverrai"),
        ("aller", "future", grammar.ILS, "iront"),
        ("peindre", "imperfect", grammar.IL, "peignait"),
        ("étudier", "imperfect", grammar.NOUS, "étudiions"),
        ("ennuyer", "present", grammar.JE, "ennuie"),
        ("ennuyer", "future", grammar.JE, "ennuierai"),
        ("lever", "conditional", grammar.IL, "lèverait"),
        ("courir", "future", grammar.VOUS, "courrez"),
    ],
)
def test_conjugation(infinitive: str, tense: str, person: int, form: str) -> None:
    assert grammar.simple_form(VERBS[infinitive], tense, person) == form


@pytest.mark.parametrize(
    ("number", "fr", "en"),
    [
        (16, "seize", "sixteen"),
        (17, "dix-sept", "seventeen"),
        (21, "vingt et un", "twenty-one"),
        (71, "soixante et onze", "seventy-one"),
        (77, "soixante-dix-sept", "seventy-seven"),
        (80, "quatre-vingts", "eighty"),
        (81, "quatre-vingt-un", "eighty-one"),
        (99, "quatre-vingt-dix-neuf", "ninety-nine"),
        (100, "cent", "one hundred"),
    ],
)
def test_numbers(number: int, fr: str, en: str) -> None:
    assert (number_in_french(number), number_in_english(number)) == (fr, en)
    assert number_in_french(number).replace("un", "une") == number_in_french(number, True) or (
        number % 10 != 1 or number == 71
    )


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["je", "aime", "le", "homme"], "J'aime l'homme"),
        (["il", "va", "à", "le", "marché"], "Il va au marché"),
        (["il", "va", "à", "le", "hôtel"], "Il va à l'hôtel"),
        (["près", "de les", "gares"], "Près des gares"),
        (["elle", "ne", "a", "pas", "de", "eau"], "Elle n'a pas d'eau"),
        (["parce que", "huit", "chiens"], "Parce que huit chiens"),
        (["il", "ne", "y", "a", "pas"], "Il n'y a pas"),
        (["je", "veux", "le_", "aider"], "Je veux l'aider"),
    ],
)
def test_words_meet_as_french_spells_them(words: list[str], written: str) -> None:
    assert french(words) == written


def test_a_becomes_an_before_a_vowel_that_sounds() -> None:
    assert english(["a", "orange", "and", "a", "useful", "book"]) == "An orange and a useful book"


def everything(number: int = 6000) -> list[tuple[str, str]]:
    rng = Random(11)
    return [(made.fr, made.en) for made in (sentence(rng) for _ in range(number))]


def test_no_french_is_left_that_should_have_met_its_neighbour() -> None:
    wrong = re.compile(
        r"\b(?:[Jj]e|[Ll][ea]|[Dd]e|[Nn]e|[Mm]e|[Tt]e|[Ss]e|[Qq]ue) [aàâeéèêiîoôuûœ]|\b[Dd]e les?\b"
        r"(?! \w+er\b)|\bà les?\b|  |_"
    )
    found = [fr for fr, _ in everything() if wrong.search(fr.replace("que onze", "onze"))]
    assert found == []


def test_articles_agree_with_their_nouns() -> None:
    nouns = [noun for kind in lexicon.NOUNS for noun in lexicon.BY_KIND[kind]]
    sides: dict[str, set[bool]] = {}
    for noun in nouns:
        sides.setdefault(noun.fr, set()).add(noun.feminine)
        if noun.fr_plural != noun.fr:
            sides.setdefault(noun.fr_plural, set()).add(noun.feminine)
    gender = {fr: found.pop() for fr, found in sides.items() if len(found) == 1}
    plural = {noun.fr_plural for noun in nouns if noun.fr_plural != noun.fr}
    wanted = {"un": (False, False), "une": (True, False), "le": (False, False),
              "la": (True, False), "cet": (False, False), "cette": (True, False)}  # fmt: skip
    verbs = {form for verb in VERBS.values() for form in (*verb.present, verb.infinitive)}
    checked = 0
    for fr, _ in everything():
        for article, word in re.findall(
            r"(?<![-\w])(?<!et )(une?|le|la|cette|cet) (\w+)\b", fr.lower()
        ):
            if word in gender and word not in verbs:
                assert (gender[word], word in plural) == wanted[article], fr
                checked += 1
    assert checked > 1000


def test_the_same_french_is_never_translated_twice_in_different_ways() -> None:
    found: dict[str, str] = {}
    for fr, en in everything(20000):
        assert found.setdefault(fr, en) == en


def test_every_sentence_is_marked_and_begins_with_a_capital() -> None:
    for fr, en in everything(2000):
        assert fr[0].isupper(), fr
        assert en[0].isupper(), en
        assert fr[-1] in ".?!", fr
        assert fr[-1] == en[-1], fr
        assert (fr[-2] == " ") == (fr[-1] in "?!"), fr


def test_splits_share_no_sentence_and_the_test_has_combinations_that_training_lacks() -> None:
    train = dict(pocket.pairs("train", 3000))
    test = dict(pocket.pairs("test", 300))
    assert not train.keys() & test.keys()
    assert train == dict(pocket.pairs("train", 3000))
    rng = Random(5)
    made = [sentence(rng) for _ in range(3000)]
    kept = {pair for each in made if not pocket.held_out(each) for pair in each.combined}
    lacking = [each for each in made if pocket.held_out(each)]
    assert lacking
    assert all(each.combined - kept for each in lacking)


def test_there_are_enough_words_and_sentences() -> None:
    nouns = {noun.fr for kind in lexicon.NOUNS for noun in lexicon.BY_KIND[kind]}
    words = nouns | {each.masculine for each in lexicon.ADJECTIVES} | VERBS.keys()
    said = {word for fr, _ in everything(8000) for word in re.findall(r"\w+", fr.lower())}
    assert len(words) > 280
    assert len(words | said) > 1500
    # A transitive verb of the lexicon, with each noun of its classes, by the ways of saying it:
    # 6 persons, 4 tenses, denied or not, 2 determiners, with an adjective of the noun or without.
    objects = sum(len(lexicon.BY_KIND[kind]) for verb in lexicon.TRANSITIVE for kind in verb.kinds)
    assert objects * 6 * 4 * 2 * 2 * 5 > 1_000_000
