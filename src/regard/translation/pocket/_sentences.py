"""The sentences of the pocket corpus: each kind is a function from chance to both languages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from regard.translation.pocket import _grammar as grammar
from regard.translation.pocket import _lexicon as lexicon
from regard.translation.pocket._grammar import JE, NOUS, VOUS, Action, Pair, Phrase
from regard.translation.pocket._numbers import number_in_english, number_in_french
from regard.translation.pocket._writing import english, french

ON = ("plage", "île", "montagne", "pont")
NEAR = (("devant", "in front of"), ("derrière", "behind"), ("près de", "near"),
        ("à côté de", "next to"))  # fmt: skip
LIVING = ("person", "person", "animal")
PLAIN_TENSES = ("present", "past", "future", "imperfect")
COLOURS = ("red", "blue", "green", "black", "white", "yellow", "grey", "brown")
NOT_COMPARED = (*COLOURS, "French", "English", "Italian", "Spanish", "good", "bad", "empty", "sick")
COMPARED = {"big": "bigger", "sad": "sadder", "fat": "fatter", "hot": "hotter", "shy": "shyer"}
NOT_COMMANDED = ("vouloir", "avoir", "connaître", "voir", "recevoir", "perdre", "être")
MOUNTED = ("train", "bus", "bateau", "avion", "voiture", "taxi", "vélo")


@dataclass(frozen=True)
class Sentence:
    """French, English, and the combinations of two words that it makes."""

    fr: str
    en: str
    combined: frozenset[Pair]


@dataclass(frozen=True)
class Clause:
    fr: list[str]
    en: list[str]
    combined: tuple[Pair, ...] = ()
    mark: str = "."

    def sentence(self) -> Sentence:
        fr_mark = self.mark if self.mark == "." else " " + self.mark
        return Sentence(
            french(self.fr) + fr_mark, english(self.en) + self.mark, frozenset(self.combined)
        )


def _told(who: Phrase, done: Action) -> Clause:
    combined = (*who.combined, *done.combined)
    return Clause(grammar.in_french(who, done), grammar.in_english(who, done), combined)


def _timed(rng: Random, clause: Clause, done: Action) -> Clause:
    """Perhaps with a time that suits the tense, at either end."""
    times = lexicon.WHEN.get(grammar.TIMED.get(done.tense, ""))
    if done.tense != "now" and (rng.random() < 0.6 or not times or done.adverb or done.negation):
        return clause
    assert times
    fr, en = rng.choice(times)
    if rng.random() < 0.4:
        return replace(clause, fr=[fr, ",", *clause.fr], en=[en, ",", *clause.en])
    return replace(clause, fr=[*clause.fr, fr], en=[*clause.en, en])


def _place(rng: Random) -> Phrase:
    return grammar.noun_phrase(
        rng, ("place",), determiners=("the", "this"), plain=rng.random() < 0.7
    )


def _at(rng: Random, place: Phrase) -> Pair:
    if rng.random() < 0.3:
        return rng.choice(NEAR)
    return ("sur", "on") if place.head in ON else ("dans", "in")


def _where(rng: Random) -> tuple[Pair, tuple[Pair, ...]]:
    place = _place(rng)
    fr, en = _at(rng, place)
    return (f"{fr} {place.fr}", f"{en} {place.en}"), place.combined


# --- Statements -----------------------------------------------------------------------------


def doing(rng: Random) -> Clause:
    """Marie ne mange pas les pommes rouges."""
    verb, who = rng.choice(lexicon.TRANSITIVE), grammar.subject(rng)
    done = grammar.action(rng, verb, grammar.any_tense(rng))
    done = grammar.with_object(done, grammar.object_of(rng, verb, who))
    return _timed(rng, _told(who, done), done)


def doing_it(rng: Random) -> Clause:
    """Nous les avons mangées."""
    while True:
        verb, who = rng.choice(lexicon.TRANSITIVE), grammar.subject(rng)
        done = grammar.with_clitic(rng, grammar.action(rng, verb, grammar.any_tense(rng)))
        if grammar.clear(who, done):
            return _timed(rng, _told(who, done), done)


def being_somewhere(rng: Random) -> Clause:
    """Le chat dort sous la table."""
    verb, who = rng.choice((*lexicon.INTRANSITIVE, lexicon.LIVE)), grammar.subject(rng, LIVING)
    done = grammar.action(rng, verb, grammar.any_tense(rng))
    if rng.random() < 0.5 or verb is lexicon.LIVE:
        (fr, en), combined = _where(rng)
        done = replace(done, fr=(fr,), en=(en,), combined=combined)
    return _timed(rng, _told(who, done), done)


def going(rng: Random) -> Clause:
    """Ils sont allés à la gare; ils y vont en train."""
    who, tense = grammar.subject(rng, LIVING), rng.choice(PLAIN_TENSES)
    done = grammar.action(rng, lexicon.GO, tense)
    if rng.random() < 0.25:
        if "ir" in grammar.simple_form(lexicon.GO, tense, who.person)[:2]:
            done = replace(done, tense="present")  # one says j'irai, not j'y irai
        done = replace(done, clitics=("y",), clitics_en="there")
    else:
        place = _place(rng)
        done = replace(done, fr=(f"à {place.fr}",), en=(f"to {place.en}",), combined=place.combined)
    if rng.random() < 0.3:
        vehicle = rng.choice(MOUNTED)
        noun = next(each for each in lexicon.BY_KIND["vehicle"] if each.fr == vehicle)
        by = "à" if vehicle == "vélo" else "en"
        done = replace(done, fr=(*done.fr, f"{by} {noun.fr}"), en=(*done.en, f"by {noun.en}"))
    return _timed(rng, _told(who, done), done)


def giving(rng: Random) -> Clause:
    """Il donne un livre à sa sœur; il me donne un livre; il me le donne."""
    verb, who = rng.choice(lexicon.DITRANSITIVE), grammar.subject(rng)
    done = grammar.action(rng, verb, grammar.any_tense(rng))
    what = grammar.object_of(rng, verb, who)
    way = rng.random()
    if way < 0.4:
        done = grammar.with_object(done, what)
        whom = grammar.noun_phrase(rng, ("person",), who, determiners=("the", "a", "own"))
        combined = (*done.combined, *whom.combined)
        fr, en = (*done.fr, "à", whom.fr), (*done.en, "to", whom.en)
        return _timed(rng, _told(who, replace(done, fr=fr, en=en, combined=combined)), done)
    pronouns = {JE: ("me", "me"), 1: ("te", "you"), NOUS: ("nous", "us"), VOUS: ("vous", "you")}
    given = [pair for person, pair in pronouns.items() if person % 3 != who.person % 3]
    to_fr, to_en = rng.choice([*given, ("leur", "them")])
    if way < 0.8:
        done = replace(grammar.with_object(done, what), clitics=(to_fr,), clitics_en=to_en)
        return _timed(rng, _told(who, done), done)
    it = "les_" if what.plural else "la_" if what.feminine else "le_"
    clitics = (it, to_fr) if to_fr == "leur" else (to_fr, it)
    done = replace(
        done, clitics=clitics, clitics_en=f"{'them' if what.plural else 'it'} to {to_en}",
        object_before=(what.feminine, what.plural),
    )  # fmt: skip
    return _timed(rng, _told(who, done), done)


def describing(rng: Random) -> Clause:
    """La maison est plus grande que l'église."""
    who, kind = _described(rng)
    adjective = rng.choice([each for each in lexicon.ADJECTIVES if kind in each.kinds])
    tense = rng.choice(("present", "present", "imperfect", "future"))
    done = grammar.action(rng, lexicon.BE, tense)
    fr = [adjective.agreeing(who.feminine, who.plural)]
    en = [adjective.en]
    way = rng.random()
    if way < 0.3 and adjective.en not in NOT_COMPARED and done.negation in ("", "not"):
        other = _another(rng, who, kind)
        fr = ["plus", *fr, "que", other.fr]
        en = [_comparative(adjective.en), "than", other.en]
    elif way < 0.5:
        quite = [] if done.negation else [("assez", "quite")]
        much = rng.choice([("très", "very"), ("trop", "too"), *quite])
        fr, en = [much[0], *fr], [much[1], *en]
    combined = ((adjective.masculine, who.head),) if who.head else ()
    done = replace(done, fr=tuple(fr), en=tuple(en), combined=combined)
    return _told(who, done)


def _another(rng: Random, than: Phrase, kind: str) -> Phrase:
    while True:
        other = grammar.noun_phrase(rng, (kind,), plain=True, determiners=("the", "this"))
        if other.head != than.head:
            return other


def _described(rng: Random) -> tuple[Phrase, str]:
    if rng.random() < 0.35:
        return grammar.pronoun(rng), "person"
    kind = rng.choice(("person", "animal", *grammar.THINGS))
    determiners = ("the", "this", "own")
    return grammar.noun_phrase(rng, (kind,), plain=True, determiners=determiners), kind


def _comparative(word: str) -> str:
    if word in COMPARED:
        return COMPARED[word]
    if word.endswith("y"):
        return word[:-1] + "ier"
    syllables = sum(
        a in "aeiouy" and b not in "aeiouy" for a, b in zip(word, word[1:] + "#", strict=True)
    )
    if syllables - word.endswith("e") <= 1:
        return word + ("r" if word.endswith("e") else "er")
    return "more " + word


def there_is(rng: Random) -> Clause:
    """Il y a trois chiens dans le jardin; il n'y a pas de pain sur la table."""
    kinds = rng.choice((LIVING, ("food", "dish", "drink", "thing", "text")))
    what = grammar.noun_phrase(rng, kinds, determiners=("a", "number", "many"))
    (fr, en), combined = _where(rng)
    if "thing" in kinds and rng.random() < 0.6:
        table = grammar.noun_phrase(rng, ("thing",), plain=True, determiners=("the", "own"))
        fr, en = f"à côté de {table.fr}", f"next to {table.en}"
        combined = ()
    be = "are" if what.plural else "is"
    if what.indefinite and rng.random() < 0.3:
        none_fr = "de" + what.fr.removeprefix(what.indefinite)
        none_en = what.en.partition(" ")[2]
        words = ["il ne y a pas", none_fr, fr], ["there", be, "no", none_en, en]
    else:
        words = ["il y a", what.fr, fr], ["there", be, what.en, en]
    return Clause(*words, (*what.combined, *combined))


def age(rng: Random) -> Clause:
    """Ma sœur a vingt et un ans."""
    who, years = grammar.subject(rng), rng.randint(7, 99)
    if not (who.pronoun or not who.head):
        who = grammar.noun_phrase(rng, ("person",), determiners=("the", "own"))
    done = Action(lexicon.HAVE, rng.choice(("present", "present", "imperfect", "future")))
    en = replace(done, verb=lexicon.BE)
    said = [f"{number_in_english(years)} years old"]
    return Clause(
        [*grammar.in_french(who, done), number_in_french(years), "ans"],
        [*grammar.in_english(who, en), *said], who.combined,
    )  # fmt: skip


def at_an_hour(rng: Random) -> Clause:
    """Nous nous levons à sept heures."""
    verb, who = rng.choice(lexicon.INTRANSITIVE), grammar.subject(rng)
    tense = rng.choice(PLAIN_TENSES[:3])
    done = replace(grammar.action(rng, verb, tense), adverb="")
    hour = rng.randint(2, 12)
    told = _told(who, done)
    at = f"à {number_in_french(hour)} heures", f"at {number_in_english(hour)} o'clock"
    return Clause([*told.fr, at[0]], [*told.en, at[1]], told.combined)


def having_some(rng: Random) -> Clause:
    """J'en ai trois."""
    who, number = grammar.pronoun(rng), rng.randint(2, 60)
    verbs = [each for each in lexicon.TRANSITIVE if "food" in each.kinds or "thing" in each.kinds]
    done = Action(rng.choice(verbs), rng.choice(("present", "past", "future")), clitics=("en",))
    told = _told(who, done)
    return Clause(
        [*told.fr, number_in_french(number)], [*told.en, number_in_english(number), "of them"]
    )


def one_who(rng: Random) -> Clause:
    """La femme qui lit le journal est fatiguée; les pommes que j'ai achetées sont mûres."""
    verb = rng.choice(lexicon.TRANSITIVE)
    tense = rng.choice(PLAIN_TENSES[:2])
    done = Action(verb, tense)
    if rng.random() < 0.5:
        who = grammar.noun_phrase(rng, ("person",), plain=True, determiners=("the", "this"))
        done = grammar.with_object(done, grammar.object_of(rng, verb, who))
        relative = replace(who, fr="qui", en="who")
        head = who
    else:
        relative = grammar.pronoun(rng)
        head = grammar.noun_phrase(rng, verb.kinds, plain=True, determiners=("the", "this"))
        agrees = (head.feminine, head.plural)
        done = replace(done, object_before=agrees, combined=((verb.infinitive, head.head),))
        relative = replace(relative, fr="que " + relative.fr, en="that " + relative.en)
    adjective = rng.choice([each for each in lexicon.ADJECTIVES if head.kind in each.kinds])
    inner = _told(relative, done)
    be = lexicon.BE.present[head.person], grammar.be(head.person)
    return Clause(
        [head.fr, *inner.fr, be[0], adjective.agreeing(head.feminine, head.plural)],
        [head.en, *inner.en, be[1], adjective.en],
        (*inner.combined, (adjective.masculine, head.head)),
    )


def both(rng: Random) -> Clause:
    """Two statements, joined."""
    first, second = (rng.choice((doing, doing_it, being_somewhere, describing))(rng) for _ in "12")
    joined = (("et", "and"), (", mais", ", but"), ("parce que", "because"))
    fr, en = rng.choice(joined)
    return Clause(
        [*first.fr, fr, *second.fr], [*first.en, en, *second.en], first.combined + second.combined
    )


# --- Questions and commands -----------------------------------------------------------------


def asking(rng: Random) -> Clause:
    """Est-ce que tu manges la pomme ? Manges-tu la pomme ? Pourquoi manges-tu la pomme ?"""
    verb = rng.choice((*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE))
    turned = rng.random() < 0.5
    who = grammar.pronoun(rng) if turned else grammar.subject(rng)
    while turned and who.person == JE:  # one hardly says mangé-je
        who = grammar.pronoun(rng)
    tense = rng.choice(("present", "past", "future", "want", "can", "going to"))
    done = replace(grammar.action(rng, verb, tense, negated=None), adverb="")
    done = (
        replace(done, negation=done.negation and "not")
        if not turned
        else replace(done, negation="")
    )
    if verb.kinds:
        done = grammar.with_object(done, grammar.object_of(rng, verb, who))
    asked = rng.choice((("", ""), ("", ""), ("où", "where"), ("quand", "when"),
                        ("pourquoi", "why"), ("comment", "how")))  # fmt: skip
    start = [asked[0]] if turned else [asked[0], "est-ce que"]
    return Clause(
        [word for word in [*start, *grammar.in_french(who, done, turned)] if word],
        [asked[1], *grammar.in_english(who, done, asked=True)],
        (*who.combined, *done.combined), "?",
    )  # fmt: skip


def how_many(rng: Random) -> Clause:
    """Combien de pommes avez-vous mangées ?"""
    verb = rng.choice(lexicon.TRANSITIVE)
    kind = rng.choice(verb.kinds)
    noun = rng.choice(lexicon.BY_KIND[kind])
    who = grammar.pronoun(rng)
    while who.person == JE:
        who = grammar.pronoun(rng)
    agrees = (noun.feminine, noun.counted)
    done = Action(verb, rng.choice(("present", "past", "future")), object_before=agrees)
    many = f"how many {noun.en_plural}" if noun.counted else f"how much {noun.en}"
    return Clause(
        ["combien de", noun.fr_plural if noun.counted else noun.fr,
         *grammar.in_french(who, done, inverted=True)],
        [many, *grammar.in_english(who, done, asked=True)], ((verb.infinitive, noun.fr),), "?",
    )  # fmt: skip


def asking_for(rng: Random) -> Clause:
    """Qui mange le pain ? Qu'est-ce que tu manges ?"""
    verb = rng.choice(lexicon.TRANSITIVE)
    done = Action(verb, rng.choice(PLAIN_TENSES[:3]))
    if rng.random() < 0.5:
        who = Phrase("qui", "who")
        done = grammar.with_object(
            done, grammar.object_of(rng, verb, who, ("the", "this", "number"))
        )
        told = _told(who, done)
        return replace(told, mark="?")
    who = grammar.subject(rng)
    return Clause(
        ["que", "est-ce que", *grammar.in_french(who, done)],
        ["what", *grammar.in_english(who, done, asked=True)], who.combined, "?",
    )  # fmt: skip


def commanding(rng: Random) -> Clause:
    """Ne mangez pas ce gâteau ! Mangeons une pomme !"""
    fit = [each for each in lexicon.TRANSITIVE if each.infinitive not in NOT_COMMANDED]
    verb, person = rng.choice(fit), rng.choice((NOUS, VOUS))
    done = Action(verb, "present", rng.choice(("", "", "not")))
    what = grammar.object_of(rng, verb, Phrase("", "", person))
    done = grammar.with_object(done, what)
    denied = bool(done.negation)
    fr = ["ne"] * denied + [verb.present[person]] + ["pas"] * denied
    en = {NOUS: ["let us", "not" * denied], VOUS: ["do not" * denied]}[person]
    return Clause([*fr, *done.fr], [*en, verb.base, *done.en], done.combined, "!")


KINDS: dict[Callable[[Random], Clause], int] = {
    doing: 22, doing_it: 10, being_somewhere: 9, going: 6, giving: 10, describing: 11, there_is: 6,
    age: 2, at_an_hour: 3, having_some: 2, one_who: 6, both: 6, asking: 10, how_many: 3,
    asking_for: 4, commanding: 4,
}  # fmt: skip


def sentence(rng: Random) -> Sentence:
    """Any one."""
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    return kind(rng).sentence()
