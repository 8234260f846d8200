"""The words of the pocket corpus: French, then English, then what cannot be derived by rule."""

from __future__ import annotations

from dataclasses import dataclass

# French, gender, English, and the plurals that no rule gives (French after -, English after +).
NOUNS = {
    "person": """
        homme m man +men | femme f woman +women | enfant m child +children | garçon m boy
        fille f girl | ami m friend | amie f friend | voisin m neighbour | voisine f neighbour
        médecin m doctor | professeur m teacher | étudiant m student | étudiante f student
        frère m brother | sœur f sister | père m father | mère f mother | oncle m uncle
        tante f aunt | cousin m cousin | cousine f cousin | boulanger m baker
        boulangère f baker | fermier m farmer | fermière f farmer | chanteur m singer
        chanteuse f singer | acteur m actor | actrice f actress | pêcheur m fisherman +fishermen
        soldat m soldier | reine f queen | roi m king | facteur m postman +postmen
        infirmière f nurse | avocat m lawyer | cuisinier m cook | jardinier m gardener
        voyageur m traveller | pilote m pilot | peintre m painter | touriste m tourist""",
    "animal": """
        chien m dog | chat m cat | cheval m horse -chevaux | vache f cow | oiseau m bird -oiseaux
        mouton m sheep +sheep | souris f mouse +mice | lapin m rabbit | canard m duck
        poule f hen | cochon m pig | lion m lion | ours m bear | singe m monkey | renard m fox
        chèvre f goat | éléphant m elephant | tortue f turtle | âne m donkey
        loup m wolf +wolves""",
    "food": """
        pomme f apple | poire f pear | orange f orange | tomate f tomato +tomatoes
        gâteau m cake | œuf m egg | biscuit m biscuit | banane f banana | cerise f cherry
        fraise f strawberry | sandwich m sandwich | oignon m onion | carotte f carrot
        citron m lemon | champignon m mushroom | abricot m apricot | crêpe f pancake
        saucisse f sausage""",
    "dish": """
        pain m bread | fromage m cheese | viande f meat | riz m rice | soupe f soup
        beurre m butter | miel m honey | chocolat m chocolate | confiture f jam | salade f salad
        sucre m sugar | sel m salt | huile f oil""",
    "drink": """
        eau f water | lait m milk | café m coffee | thé m tea | vin m wine | bière f beer
        jus m juice | limonade f lemonade""",
    "text": """
        livre m book | lettre f letter | journal m newspaper -journaux | roman m novel
        poème m poem | histoire f story | article m article | message m message
        magazine m magazine | liste f list | carte f map | chanson f song""",
    "thing": """
        table f table | chaise f chair | lampe f lamp | chapeau m hat | manteau m coat
        robe f dress | chemise f shirt | chaussure f shoe | sac m bag | clé f key
        montre f watch | téléphone m telephone | stylo m pen | crayon m pencil | cadeau m present
        boîte f box | bouteille f bottle | verre m glass | assiette f plate
        couteau m knife +knives
        cuillère f spoon | fenêtre f window | porte f door | photo f photo | tableau m painting
        guitare f guitar | piano m piano | ballon m ball | parapluie m umbrella | fleur f flower
        arbre m tree | pierre f stone | lit m bed | miroir m mirror | horloge f clock
        tapis m carpet | ordinateur m computer | écharpe f scarf +scarves | gant m glove""",
    "vehicle": """
        voiture f car | vélo m bicycle | train m train | bateau m boat | avion m plane
        bus m bus | camion m lorry | moto f motorbike | taxi m taxi""",
    "place": """
        maison f house | école f school | jardin m garden | ville f town | village m village
        marché m market | gare f station | parc m park | musée m museum | église f church
        restaurant m restaurant | hôtel m hotel | plage f beach | forêt f forest | ferme f farm
        bibliothèque f library | hôpital m hospital -hôpitaux | théâtre m theatre
        cuisine f kitchen
        bureau m office | château m castle | boulangerie f bakery | magasin m shop | usine f factory
        piscine f swimming pool | banque f bank | île f island | montagne f mountain
        pont m bridge | rue f street""",
}  # fmt: skip

# Nouns of these classes that some verbs ask for.
GROUPS = {
    "cooked": "soupe riz salade confiture viande gâteau crêpe sandwich saucisse œuf",
    "cuttable": """pomme poire orange tomate gâteau banane sandwich oignon carotte citron
        champignon saucisse pain fromage viande crêpe""",
    "opened": "porte fenêtre boîte bouteille sac parapluie lettre livre journal cadeau",
    "closed": """porte fenêtre boîte bouteille sac parapluie livre magasin restaurant musée école
        bibliothèque banque boulangerie usine""",
    "built": """maison école église château pont hôtel hôpital théâtre usine table chaise bateau
        avion restaurant gare musée""",
    "fragile": """chaise lampe montre téléphone stylo crayon boîte bouteille verre assiette fenêtre
        guitare piano parapluie miroir horloge ordinateur""",
    "carried": """table chaise lampe chapeau manteau robe chemise sac cadeau boîte bouteille verre
        assiette tableau guitare parapluie fleur pierre miroir tapis écharpe""",
}  # fmt: skip

# French masculine, feminine if no rule gives it, masculine before a vowel after ~, English; the
# classes that it describes. Those of BEFORE stand before their noun.
BEFORE = """
    grand ~grand big: animal food thing vehicle place
    petit small: person animal food thing vehicle place
    beau/belle ~bel beautiful: animal thing vehicle place text
    vieux/vieille ~vieil old: person animal thing vehicle place text
    nouveau/nouvelle ~nouvel new: person text thing vehicle place
    bon/bonne good: person food dish drink text animal
    mauvais bad: food dish drink text person
    jeune young: person animal
    gros/grosse fat: animal
    joli pretty: thing place text animal
    long/longue long: text"""
AFTER = """
    rouge red: thing vehicle food
    bleu blue: thing vehicle
    vert green: thing vehicle food
    noir black: thing vehicle animal
    blanc/blanche white: thing vehicle animal
    jaune yellow: thing vehicle
    gris grey: thing vehicle animal
    brun brown: animal
    heureux/heureuse happy: person animal
    triste sad: person text
    fatigué tired: person animal
    malade sick: person animal
    intelligent intelligent: person animal
    gentil/gentille kind: person
    riche rich: person
    célèbre famous: person place text
    timide shy: person
    courageux/courageuse brave: person
    paresseux/paresseuse lazy: person animal
    poli polite: person
    drôle funny: person text
    calme quiet: person place animal
    lourd heavy: thing
    léger/légère light: thing
    rapide fast: vehicle
    lent slow: vehicle
    froid cold: dish drink food
    chaud hot: dish drink food
    frais/fraîche fresh: food dish
    délicieux/délicieuse delicious: food dish drink
    sucré sweet: food drink
    mûr ripe: food
    intéressant interesting: text place
    ennuyeux/ennuyeuse boring: text place
    utile useful: text thing
    moderne modern: place vehicle thing
    propre/propre clean: thing place vehicle
    sale dirty: thing place vehicle animal
    vide empty: thing place vehicle
    tranquille peaceful: place
    dangereux/dangereuse dangerous: animal place vehicle
    étrange strange: person animal thing text place
    français French: person text vehicle food
    anglais English: person text vehicle
    italien/italienne Italian: person text vehicle
    espagnol Spanish: person text vehicle"""

# French infinitive, English (base, past, participle where no rule gives them), the classes of its
# object after a colon. A verb that takes the auxiliary être is marked +, a reflexive one begins
# with se.
VERBS = """
    manger eat,ate,eaten: food dish
    préparer prepare: cooked
    couper cut,cut,cut: cuttable
    goûter taste: food dish drink
    boire drink,drank,drunk: drink
    verser pour: drink
    lire read,read,read: text
    écrire write,wrote,written: text
    traduire translate: text
    oublier forget,forgot,forgotten: thing text
    acheter buy,bought,bought: food dish drink text thing vehicle
    vendre sell,sold,sold: food dish drink text thing vehicle
    porter carry: carried
    réparer repair: vehicle
    conduire drive,drove,driven: vehicle
    laver wash: vehicle animal
    voir see,saw,seen: person animal thing vehicle place
    regarder watch: person animal
    chercher look_for,looked_for,looked_for: person animal thing text
    trouver find,found,found: person animal thing text
    perdre lose,lost,lost: thing text
    cacher hide,hid,hidden: thing text
    casser break,broke,broken: fragile
    ouvrir open: opened
    fermer close: closed
    aimer love: person animal place text food
    aider help: person
    connaître know,knew,known: person
    attendre wait_for,waited_for,waited_for: person
    inviter invite: person
    écouter listen_to,listened_to,listened_to: person
    suivre follow: person animal
    appeler call: person animal
    remercier thank: person
    saluer greet: person
    rencontrer meet,met,met: person
    nourrir feed,fed,fed: animal
    caresser stroke: animal
    visiter visit: place
    quitter leave,left,left: place
    traverser cross: place
    photographier photograph: animal place vehicle
    dessiner draw,drew,drawn: animal place vehicle thing
    peindre paint: thing place
    construire build,built,built: built
    vouloir want: food dish drink text thing vehicle
    prendre take,took,taken: thing text
    choisir choose,chose,chosen: food text thing vehicle
    garder keep,kept,kept: thing text
    recevoir receive: text
    avoir have,had,had: animal food text thing vehicle
    finir finish: text"""
GIVING = """
    donner give,gave,given: food text thing
    montrer show,showed,shown: text thing animal
    envoyer send,sent,sent: text thing
    prêter lend,lent,lent: text thing vehicle
    apporter bring,brought,brought: food text thing
    lire read,read,read: text
    vendre sell,sold,sold: animal vehicle thing
    promettre promise: animal vehicle thing"""
ALONE = """
    dormir sleep,slept,slept
    chanter sing,sang,sung
    danser dance
    travailler work
    courir run,ran,run
    nager swim,swam,swum
    parler speak,spoke,spoken
    rire laugh
    pleurer cry
    cuisiner cook
    voyager travel,travelled,travelled
    étudier study
    jouer play
    attendre wait
    partir+ leave,left,left
    arriver+ arrive
    sortir+ go_out,went_out,gone_out
    rester+ stay
    revenir+ come_back,came_back,come_back
    tomber+ fall,fell,fallen
    se_lever get_up,got_up,got_up
    se_coucher go_to_bed,went_to_bed,gone_to_bed
    se_reposer rest
    se_laver wash
    se_promener go_for_a_walk,went_for_a_walk,gone_for_a_walk
    s'habiller get_dressed,got_dressed,got_dressed
    se_dépêcher hurry
    s'ennuyer get_bored,got_bored,got_bored"""

# The present of verbs that follow no rule, then the stem of the future, then the participle.
IRREGULAR = """
    être suis es est sommes êtes sont, ser, été
    avoir ai as a avons avez ont, aur, eu
    aller vais vas va allons allez vont, ir, allé
    vouloir veux veux veut voulons voulez veulent, voudr, voulu
    pouvoir peux peux peut pouvons pouvez peuvent, pourr, pu
    devoir dois dois doit devons devez doivent, devr, dû
    boire bois bois boit buvons buvez boivent, boir, bu
    lire lis lis lit lisons lisez lisent, lir, lu
    écrire écris écris écrit écrivons écrivez écrivent, écrir, écrit
    traduire traduis traduis traduit traduisons traduisez traduisent, traduir, traduit
    conduire conduis conduis conduit conduisons conduisez conduisent, conduir, conduit
    construire construis construis construit construisons construisez construisent, construir, \
construit
    voir vois vois voit voyons voyez voient, verr, vu
    ouvrir ouvre ouvres ouvre ouvrons ouvrez ouvrent, ouvrir, ouvert
    connaître connais connais connaît connaissons connaissez connaissent, connaîtr, connu
    suivre suis suis suit suivons suivez suivent, suivr, suivi
    peindre peins peins peint peignons peignez peignent, peindr, peint
    prendre prends prends prend prenons prenez prennent, prendr, pris
    promettre promets promets promet promettons promettez promettent, promettr, promis
    recevoir reçois reçois reçoit recevons recevez reçoivent, recevr, reçu
    dormir dors dors dort dormons dormez dorment, dormir, dormi
    courir cours cours court courons courez courent, courr, couru
    rire ris ris rit rions riez rient, rir, ri
    partir pars pars part partons partez partent, partir, parti
    sortir sors sors sort sortons sortez sortent, sortir, sorti
    revenir reviens reviens revient revenons revenez reviennent, reviendr, revenu
    envoyer envoie envoies envoie envoyons envoyez envoient, enverr, envoyé"""

NAMES = {
    "Marie": "f", "Paul": "m", "Alice": "f", "Hugo": "m", "Claire": "f", "Louis": "m",
    "Sophie": "f", "Antoine": "m", "Julie": "f", "Nicolas": "m", "Emma": "f", "Pierre": "m",
}  # fmt: skip

# Times, by the tenses that they go with.
TIMES = {
    "present": """
        tous les jours=every day | le lundi=on Mondays | le dimanche=on Sundays
        le matin=in the morning
        le soir=in the evening | en été=in summer | en hiver=in winter
        chaque semaine=every week | à midi=at noon
        le mardi=on Tuesdays | le samedi=on Saturdays""",
    "now": "en ce moment=at the moment | maintenant=now",
    "past": """
        hier=yesterday | hier soir=last night | la semaine dernière=last week
        l'année dernière=last year | il y a trois jours=three days ago | ce matin=this morning
        lundi dernier=last Monday | le mois dernier=last month | il y a deux ans=two years ago""",
    "future": """
        demain=tomorrow | la semaine prochaine=next week | ce soir=tonight
        l'année prochaine=next year | dans deux heures=in two hours | bientôt=soon
        demain matin=tomorrow morning | vendredi prochain=next Friday
        le mois prochain=next month""",
}  # fmt: skip


@dataclass(frozen=True)
class Noun:
    """A noun in both languages, with its plurals."""

    fr: str
    fr_plural: str
    feminine: bool
    en: str
    en_plural: str
    kind: str

    @property
    def counted(self) -> bool:
        return self.kind not in ("dish", "drink")


@dataclass(frozen=True)
class Adjective:
    """An adjective: masculine, feminine, masculine before a vowel; the classes it describes."""

    masculine: str
    feminine: str
    before_vowel: str
    en: str
    kinds: tuple[str, ...]
    precedes: bool

    def agreeing(self, feminine: bool, plural: bool, vowel_follows: bool = False) -> str:
        if feminine:
            return self.feminine + "s" * plural
        if plural:
            return french_plural(self.masculine)
        return self.before_vowel if vowel_follows else self.masculine


@dataclass(frozen=True)
class Verb:
    """A verb: six forms of the present, the stem of the future, the participle; the English."""

    infinitive: str
    present: tuple[str, ...]
    future: str
    participle: str
    with_être: bool
    reflexive: bool
    base: str
    past: str
    done: str
    kinds: tuple[str, ...]


def french_plural(word: str) -> str:
    if word[-1] in "sxz":
        return word
    return word + ("x" if word.endswith("eau") else "s")


def english_plural(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _nouns() -> dict[str, tuple[Noun, ...]]:
    return {
        kind: tuple(
            _noun(line, kind) for line in table.replace("\n", "|").split("|") if line.strip()
        )
        for kind, table in NOUNS.items()
    }


def _noun(line: str, kind: str) -> Noun:
    fr, gender, *rest = line.split()
    said = {word[0]: word[1:] for word in rest if word[0] in "+-"}
    en = " ".join(word for word in rest if word[0] not in "+-")
    fr_plural = said.get("-", french_plural(fr))
    return Noun(fr, fr_plural, gender == "f", en, said.get("+", english_plural(en)), kind)


def _adjectives(table: str, precedes: bool) -> tuple[Adjective, ...]:
    return tuple(_adjective(line, precedes) for line in table.strip().splitlines())


def _adjective(line: str, precedes: bool) -> Adjective:
    words, kinds = line.split(":")
    fr, *others = words.split()
    masculine, _, feminine = fr.partition("/")
    vowel = next((word[1:] for word in others if word[0] == "~"), masculine)
    feminine = feminine or masculine.removesuffix("e") + "e"
    return Adjective(masculine, feminine, vowel, others[-1], tuple(kinds.split()), precedes)


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(verb(line.strip()) for line in table.strip().splitlines())


def verb(line: str) -> Verb:
    """From a line such as `manger eat,ate,eaten: food dish`."""
    words, _, kinds = line.partition(":")
    fr, en = words.split()
    infinitive = fr.removesuffix("+").removeprefix("se_").removeprefix("s'")
    reflexive = fr.startswith(("se_", "s'"))
    base, *forms = en.replace("_", " ").split(",")
    past, done = forms or (english_past(base),) * 2
    return Verb(
        infinitive, *conjugated(infinitive), fr.endswith("+") or reflexive, reflexive,
        base, past, done, tuple(kinds.split()),
    )  # fmt: skip


def conjugated(infinitive: str) -> tuple[tuple[str, ...], str, str]:
    """Present, stem of the future, participle."""
    if infinitive in _TABLE:
        return _TABLE[infinitive]
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        strong = _strong(stem)
        soft = {"g": "ge", "c": "ç"}
        we = (
            (stem[:-1] + soft[stem[-1]] if stem[-1] == "c" else stem + "e")
            if stem[-1] in soft
            else stem
        )
        present = (
            strong + "e",
            strong + "es",
            strong + "e",
            we + "ons",
            stem + "ez",
            strong + "ent",
        )
        weak = stem[-2:-1] == "é" or strong == stem
        return present, (infinitive if weak else strong + "er"), stem + "é"
    if infinitive.endswith("ir"):
        ends = ("is", "is", "it", "issons", "issez", "issent")
        return tuple(stem + end for end in ends), infinitive, stem + "i"
    ends = ("s", "s", "", "ons", "ez", "ent")
    return tuple(stem + end for end in ends), infinitive[:-1], stem + "u"


def _strong(stem: str) -> str:
    """The stem of verbs in -er where it is stressed: achète, appelle, ennuie."""
    if stem == "appel":
        return "appell"
    if stem.endswith("uy"):
        return stem[:-1] + "i"
    return {"achet": "achèt", "lev": "lèv", "promen": "promèn"}.get(stem, stem)


def english_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def _irregular() -> dict[str, tuple[tuple[str, ...], str, str]]:
    table = {}
    for line in IRREGULAR.strip().splitlines():
        forms, future, participle = line.strip().split(", ")
        infinitive, *present = forms.split()
        table[infinitive] = (tuple(present), future, participle)
    return table


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    parts = (part.strip().partition("=") for part in table.replace("\n", "|").split("|"))
    return tuple((fr, en) for fr, _, en in parts if fr)


_TABLE = _irregular()
BY_KIND = _nouns()
_NAMED = {noun.fr: noun for nouns in BY_KIND.values() for noun in nouns}
BY_KIND |= {name: tuple(_NAMED[fr] for fr in listed.split()) for name, listed in GROUPS.items()}
ADJECTIVES = _adjectives(BEFORE, True) + _adjectives(AFTER, False)
TRANSITIVE = _verbs(VERBS)
DITRANSITIVE = _verbs(GIVING)
INTRANSITIVE = _verbs(ALONE)
WHEN = {tense: _pairs(table) for tense, table in TIMES.items()}
GO, BE, LIVE = verb("aller+ go,went,gone"), verb("être be,was,been"), verb("habiter live")
HAVE = verb("avoir have,had,had")
WANT, CAN, MUST = verb("vouloir want"), verb("pouvoir can,could,could"), verb("devoir must,had,had")
