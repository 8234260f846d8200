"""The grammar of the pocket corpus: who does what, and the same said in English.

French that English would leave open is not made: `son` only where its owner is the subject,
`lui` not at all, `l'` for a person only where the participle shows whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from regard.translation.pocket import _lexicon as lexicon
from regard.translation.pocket._lexicon import Adjective, Noun, Verb
from regard.translation.pocket._numbers import number_in_english, number_in_french
from regard.translation.pocket._writing import begins_with_vowel

JE, TU, IL, NOUS, VOUS, ILS = range(6)
SUBJECTS = ("je", "tu", "il", "nous", "vous", "ils")
ENGLISH_SUBJECTS = ("I", "you", "he", "we", "you", "they")
OBJECTS = ("me", "te", "", "nous", "vous", "")
ENGLISH_OBJECTS = ("me", "you", "", "us", "you", "")
THINGS = ("food", "dish", "drink", "text", "thing", "vehicle", "place")
TENSES = ("present", "now", "past", "future", "going to", "imperfect", "conditional",
          "want", "can", "must")  # fmt: skip
WEIGHTS = (6, 1, 5, 3, 2, 2, 1, 2, 2, 1)
DETERMINERS = {"the": 4, "a": 4, "this": 1, "own": 2, "number": 2, "many": 1}
TIMED = {"present": "present", "now": "now", "past": "past", "future": "future",
         "going to": "future"}  # fmt: skip
IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
STATES = ("vouloir", "aimer", "connaître", "avoir", "voir", "recevoir", "oublier", "trouver",
          "perdre", "casser", "rencontrer", "promettre", "garder", "habiter")  # fmt: skip
Pair = tuple[str, str]


@dataclass(frozen=True)
class Phrase:
    """Somebody or something in both languages, and what agrees with it."""

    fr: str
    en: str
    person: int = IL
    feminine: bool = False
    pronoun: bool = False
    kind: str = "person"
    combined: tuple[Pair, ...] = ()
    indefinite: str = ""  # the article that a denial turns into `de`
    head: str = ""

    @property
    def plural(self) -> bool:
        return self.person >= NOUS


@dataclass(frozen=True)
class Action:
    """A verb with its tense; the pronouns before it, and what follows, in both languages."""

    verb: Verb
    tense: str
    negation: str = ""
    adverb: str = ""
    clitics: tuple[str, ...] = ()
    clitics_en: str = ""
    object_before: tuple[bool, bool] = (False, False)  # feminine, plural
    fr: tuple[str, ...] = ()
    en: tuple[str, ...] = ()
    combined: tuple[Pair, ...] = ()


NEGATIONS = {"": ("", ""), "not": ("pas", "not"), "never": ("jamais", "never"),
             "no longer": ("plus", "no longer")}  # fmt: skip
ADVERBS = {"": "", "often": "souvent", "always": "toujours", "already": "déjà"}


# --- Who and what ---------------------------------------------------------------------------


def noun_phrase(
    rng: Random,
    kinds: Sequence[str],
    owner: Phrase | None = None,
    *,
    plain: bool = False,
    determiners: Sequence[str] = tuple(DETERMINERS),
) -> Phrase:
    """An article or another determiner, perhaps adjectives, a noun."""
    noun = rng.choice(lexicon.BY_KIND[rng.choice(list(kinds))])
    plural = noun.counted and rng.random() < 0.35
    chosen = [] if plain else _adjectives(rng, noun)
    words = _described(noun, plural, chosen)
    kind = _kind_of_determiner(rng, noun, plural, determiners)
    if kind == "own":
        article, article_en = _possessive(rng, noun, plural, words[0], owner)
    else:
        article, article_en = _article(rng, kind, noun, plural, words[0])
    if article == "des" and chosen and chosen[0].precedes:
        article = "de"  # de grandes maisons
    en = [article_en, *(each.en for each in chosen), noun.en_plural if plural else noun.en]
    return Phrase(
        " ".join([article, *words]), " ".join(en), ILS if plural else IL, noun.feminine, False,
        noun.kind, tuple((each.masculine, noun.fr) for each in chosen),
        article if kind == "a" else "", noun.fr,
    )  # fmt: skip


def _adjectives(rng: Random, noun: Noun) -> list[Adjective]:
    """At most one before the noun and one after it, in this order."""
    fitting = [each for each in lexicon.ADJECTIVES if noun.kind in each.kinds]
    before = [each for each in fitting if each.precedes]
    after = [each for each in fitting if not each.precedes]
    return [rng.choice(side) for side in (before, after) if side and rng.random() < 0.3]


def _described(noun: Noun, plural: bool, chosen: list[Adjective]) -> list[str]:
    """The noun among its adjectives, which agree with it."""
    words = [noun.fr_plural if plural else noun.fr]
    for each in chosen:
        if each.precedes:
            vowel = begins_with_vowel(words[0])
            words.insert(0, each.agreeing(noun.feminine, plural, vowel))
        else:
            words.append(each.agreeing(noun.feminine, plural))
    return words


def _kind_of_determiner(rng: Random, noun: Noun, plural: bool, determiners: Sequence[str]) -> str:
    one = noun.counted and not plural
    unfit = {"this": not noun.counted, "number": not plural, "many": one}
    kinds = [kind for kind in determiners if not unfit.get(kind)]
    return rng.choices(kinds, [DETERMINERS[kind] for kind in kinds])[0]


def _article(rng: Random, kind: str, noun: Noun, plural: bool, following: str) -> Pair:
    definite = "les" if plural else "la" if noun.feminine else "le"
    if kind == "the":
        return definite, "the"
    if kind == "a" and not noun.counted:
        return "de " + definite, "some"
    if kind == "a":
        return ("des", "some") if plural else ("une" if noun.feminine else "un", "a")
    if kind == "this":
        this = "cette" if noun.feminine else "cet" if begins_with_vowel(following) else "ce"
        return ("ces", "these") if plural else (this, "this")
    if kind == "many":
        many = "many" if plural else "much"
        return rng.choice((("beaucoup de", many), ("trop de", "too " + many)))
    number = rng.choice((*range(2, 13), rng.randint(13, 100)))
    return number_in_french(number, noun.feminine), number_in_english(number)


def _possessive(
    rng: Random, noun: Noun, plural: bool, following: str, owner: Phrase | None
) -> Pair:
    choices = [JE, TU, NOUS, VOUS] + [IL] * (owner is not None and owner.person == IL)
    choices += [ILS] * (owner is not None and owner.person == ILS)
    person = owner.person if owner and rng.random() < 0.5 else rng.choice(choices)
    if person < NOUS:
        ending = "es" if plural else "on"
        if noun.feminine and not plural and not begins_with_vowel(following):
            ending = "a"
        hers = owner is not None and owner.feminine
        return "mts"[person] + ending, ("my", "your", "her" if hers else "his")[person]
    french = {NOUS: ("notre", "nos"), VOUS: ("votre", "vos"), ILS: ("leur", "leurs")}
    return french[person][plural], {NOUS: "our", VOUS: "your", ILS: "their"}[person]


def subject(rng: Random, kinds: Sequence[str] = ("person",)) -> Phrase:
    """A pronoun, a name, or somebody."""
    way = rng.random()
    if way < 0.6:
        return pronoun(rng)
    if way < 0.7:
        name, gender = rng.choice(list(lexicon.NAMES.items()))
        return Phrase(name, name, IL, gender == "f")
    return noun_phrase(rng, kinds)


def pronoun(rng: Random) -> Phrase:
    person, feminine = rng.randrange(6), rng.random() < 0.5
    fr, en = SUBJECTS[person], ENGLISH_SUBJECTS[person]
    if feminine and person in (IL, ILS):
        fr, en = ("elle", "she") if person == IL else ("elles", "they")
    return Phrase(fr, en, person, feminine, pronoun=True)


# --- What is done ---------------------------------------------------------------------------


def action(rng: Random, verb: Verb, tense: str, negated: bool | None = None) -> Action:
    """The verb in its tense, perhaps denied, perhaps with an adverb."""
    if verb.infinitive in STATES and tense in ("now", "imperfect"):
        tense = "present"
    if verb.infinitive == "vouloir" and tense in ("want", "can", "must"):
        tense = "present"
    negation = adverb = ""
    if negated or (negated is None and rng.random() < 0.25):
        usual = tense in ("present", "past", "future")
        negation = rng.choice(("not", "not", "never", "no longer")) if usual else "not"
        if tense == "past" and negation == "no longer":
            negation = "never"
    elif tense == "present" and rng.random() < 0.15:
        adverb = rng.choice(("often", "always"))
    elif tense == "past" and rng.random() < 0.15:
        adverb = "already"
    return Action(verb, tense, negation, adverb)


def any_tense(rng: Random) -> str:
    return rng.choices(TENSES, WEIGHTS)[0]


def object_of(
    rng: Random, verb: Verb, who: Phrase, determiners: Sequence[str] = tuple(DETERMINERS)
) -> Phrase:
    """What the verb is done to."""
    plain = rng.random() < 0.35
    return noun_phrase(rng, (rng.choice(verb.kinds),), who, plain=plain, determiners=determiners)


def with_object(done: Action, what: Phrase) -> Action:
    fr, en = what.fr, what.en
    if done.negation and what.indefinite:
        fr = "de" + fr.removeprefix(what.indefinite)
        en = "any" + en.removeprefix("some") if en.startswith("some ") else en
    combined = (*done.combined, *what.combined, (done.verb.infinitive, what.head))
    return replace(done, fr=(*done.fr, fr), en=(*done.en, en), combined=combined)


def with_clitic(rng: Random, done: Action) -> Action:
    """A pronoun for the object, before the verb: le, la, les, me, te, nous, vous."""
    persons = {"person", "animal"} & {*done.verb.kinds}
    plural, feminine = rng.random() < 0.4, rng.random() < 0.5
    if "person" in persons and rng.random() < 0.5:
        whom = rng.choice((JE, TU, NOUS, VOUS))
        return replace(
            done, clitics=(OBJECTS[whom],), clitics_en=ENGLISH_OBJECTS[whom],
            object_before=(feminine, whom >= NOUS),
        )  # fmt: skip
    fr = "les" if plural else "la" if feminine else "le"
    thing = "person" not in persons
    en = "them" if plural else "it" if thing else "her" if feminine else "him"
    return replace(done, clitics=(fr + "_",), clitics_en=en, object_before=(feminine, plural))


def clear(who: Phrase, done: Action) -> bool:
    """Whether the French says all that the English does, and nobody does it to himself."""
    if done.clitics and done.clitics[0] in ("le_", "la_") and done.clitics_en in ("him", "her"):
        before = _words_of(who, done)
        after = before[before.index(done.clitics[0]) + 1]
        if begins_with_vowel(after) and done.tense != "past":
            return False
    same = {"me": (JE, NOUS), "nous": (JE, NOUS), "te": (TU, VOUS), "vous": (TU, VOUS)}
    return not done.clitics or who.person not in same.get(done.clitics[0], ())


# --- French ---------------------------------------------------------------------------------


def simple_form(verb: Verb, tense: str, person: int) -> str:
    """Present, imperfect, future or conditional."""
    if tense in ("present", "now"):
        return verb.present[person]
    if tense == "imperfect":
        return _imperfect_stem(verb, person) + IMPERFECT[person]
    return verb.future + (FUTURE if tense == "future" else IMPERFECT)[person]


def _imperfect_stem(verb: Verb, person: int) -> str:
    if verb.infinitive == "être":
        return "ét"
    stem = verb.present[NOUS].removesuffix("ons")
    if person in (NOUS, VOUS):  # nous mangions, without the e that keeps the g soft
        stem = stem.removesuffix("e") if stem.endswith("ge") else stem.replace("ç", "c")
    return stem


def participle(verb: Verb, feminine: bool, plural: bool) -> str:
    stem = verb.participle + "e" * feminine
    return stem + "s" * (plural and not stem.endswith("s"))


def _reflexive(verb: Verb, person: int) -> tuple[str, ...]:
    return (("me", "te", "se", "nous", "vous", "se")[person],) if verb.reflexive else ()


def _words_of(who: Phrase, done: Action, inverted: bool = False) -> list[str]:
    """Subject, ne, pronouns, verb, pas."""
    verb, person = done.verb, who.person
    clitics = (*_reflexive(verb, person), *done.clitics)
    after = [NEGATIONS[done.negation][0] or ADVERBS[done.adverb]]
    before = ["ne"] * bool(done.negation)
    helpers = {
        "going to": lexicon.GO,
        "want": lexicon.WANT,
        "can": lexicon.CAN,
        "must": lexicon.MUST,
    }
    if done.tense == "past":
        helper = lexicon.BE if verb.with_être else lexicon.HAVE
        words = [*before, *clitics, _turned(helper.present[person], who, inverted), *after]
        words.append(_agreeing_participle(who, done))
    elif done.tense in helpers:
        form = helpers[done.tense].present[person]
        words = [*before, _turned(form, who, inverted), *after, *clitics, verb.infinitive]
    else:
        form = simple_form(verb, done.tense, person)
        words = [*before, *clitics, _turned(form, who, inverted), *after]
    return [word for word in ([] if inverted else [who.fr]) + words if word]


def _turned(form: str, who: Phrase, inverted: bool) -> str:
    if not inverted:
        return form
    t = "-t" if form[-1] not in "td" and who.person == IL else ""
    return f"{form}{t}-{who.fr}"


def _agreeing_participle(who: Phrase, done: Action) -> str:
    if done.verb.with_être:
        return participle(done.verb, who.feminine, who.plural)
    return participle(done.verb, *done.object_before)


def in_french(who: Phrase, done: Action, inverted: bool = False) -> list[str]:
    return [*_words_of(who, done, inverted), *done.fr]


# --- English --------------------------------------------------------------------------------


def third_person(base: str) -> str:
    verb, _, rest = base.partition(" ")
    if verb == "have":
        verb = "has"
    elif verb.endswith(("o", "ch", "sh", "ss", "x")):
        verb += "es"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        verb = verb[:-1] + "ies"
    else:
        verb += "s"
    return f"{verb} {rest}".strip()


DOUBLED = ("cut", "get", "run", "swim", "sit", "travel")


def ing(base: str) -> str:
    verb, _, rest = base.partition(" ")
    if verb in DOUBLED:
        verb += verb[-1]
    elif verb.endswith("e") and not verb.endswith("ee") and verb != "be":
        verb = verb[:-1]
    return f"{verb}ing {rest}".strip()


def be(person: int, past: bool = False) -> str:
    if past:
        return "was" if person in (JE, IL) else "were"
    return ("am", "are", "is", "are", "are", "are")[person]


def _parts(who: Phrase, done: Action) -> tuple[str, str]:
    """The auxiliary, or none, and what follows it."""
    verb, tense, person = done.verb, done.tense, who.person
    singular = person == IL
    if done.adverb == "already":
        return "has" if singular else "have", verb.done
    if verb.infinitive == "être" and tense in ("present", "past", "imperfect"):
        return be(person, tense != "present"), ""
    told = {
        "present": ("", third_person(verb.base) if singular else verb.base),
        "now": (be(person), ing(verb.base)),
        "past": ("", verb.past),
        "future": ("will", verb.base),
        "going to": (be(person), f"going to {verb.base}"),
        "imperfect": (be(person, past=True), ing(verb.base)),
        "conditional": ("would", verb.base),
        "want": ("", ("wants" if singular else "want") + f" to {verb.base}"),
        "can": ("can", verb.base),
        "must": ("must", verb.base),
    }
    return told[tense]


def _supported(who: Phrase, done: Action) -> tuple[str, str]:
    """The auxiliary that a denial or a question needs: do, where there is no other."""
    helper, rest = _parts(who, done)
    if helper:
        return helper, rest
    if done.tense == "past":
        return "did", done.verb.base
    base = f"want to {done.verb.base}" if done.tense == "want" else done.verb.base
    return "does" if who.person == IL else "do", base


def in_english(who: Phrase, done: Action, asked: bool = False) -> list[str]:
    """Subject, auxiliary, not or never, verb; in a question the auxiliary comes first."""
    denied = NEGATIONS[done.negation][1]
    adverb = "" if done.negation else done.adverb
    helper, rest = _parts(who, done)
    if asked or denied == "not":
        helper, rest = _supported(who, done)
    start = [helper, who.en] if asked else [who.en, helper]
    if denied == "not" and helper == "can" and not asked:
        start, denied = [who.en, "cannot"], ""
    return [*start, denied or adverb, rest, done.clitics_en, *done.en]
