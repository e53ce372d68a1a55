"""Passwords that are guessed first: those of two lists, and common words decorated with digits, signs or
look-alike letters.

The lists are the 20,000 of Django (`common-passwords.txt.gz`) and those of zxcvbn. A list of whole passwords ages
and misses `Summer2026!`; for that the word inside is looked up too.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path

WORDS = frozenset(
    """
    aaaaaa abc abcabc abcd abcde abcdef abcdefg abcdefgh access account admin administrator alexander
    alexandra alexis alpha amanda america anderson andrea andrew angel angela angels animal anthony apple
    april arsenal asdf asdfasdf asdfgh asdfghjkl ashley asshole august austin autumn azerty babygirl backup
    badboy badger bailey banana barcelona baseball basket basketball batman beach beautiful benjamin berlin
    bigdaddy bigdog billy blink bond boomer boston brandon braves brazil broncos brooklyn bubbles buddy
    bulldog buster butter butterfly camaro cameron canada carlos caroline carolina changeit changeme charles
    charlie charlotte cheese chelsea chester chicago chicken chocolate chris christian christine christmas
    christopher classic claudia coffee computer connect contact cookie cooper corvette cowboy cowboys creative
    crystal dakota dallas daniel danielle david december default defender delta demo demodemo denver diamond
    diesel digital dolphin dolphins donald dragon dragons driver eagles einstein elephant elizabeth eminem
    engineer enter england everton explorer factory faith falcon family fashion february fender ferrari
    firebird fireman fishing flower flowers football forever francis france franklin freddy freedom friday
    friend friends fuckyou galaxy gapwatch gateway genesis george gemini germany gibson ginger giants godzilla
    golden goldfish golf google gordon grandma green guardian guest guitar gunner hammer hannah happy harley
    harrypotter hawaii heather hello helloworld helpme hockey holiday honey hotdog hunter iceman iloveme
    iloveyou information internet isabella jackie jackson jaguar jaguars january jasmine jasper jennifer
    jeremy jessica jesus johnny johnson jonathan jordan joseph joshua july june junior justin kevin killer
    kimberly king knight kristina ladybug lakers lauren leader legend leonardo letmein liberty lifehack
    linkedin liverpool login london looking louise love lovely loveme lover lovers loveyou lucky maddog
    madison maggie magic manager manchester march marina marine marlboro martin marvin master matrix matthew
    maverick maxwell mercedes merlin michael michelle mickey midnight miller minecraft mohammed monday money
    monica monkey monster montana morgan mother motorola mountain mozart muffin murphy mustang mylove mypass
    mypassword nascar natalie nathan newyork nicholas nicole nintendo nirvana nissan november october office
    oliver olivia operator orange overlord packers panther paradise paris pass passw passwd password passwords
    passwort patricia patrick peaches peanut pepper phantom philip phoenix photo pickle player please pokemon
    police poland porsche portugal power precious president prince princess private programmer public purple
    qazwsx qazwsxedc qwaszx qwe qweasd qweasdzxc qweqwe qwert qwerty qwertyui qwertyuiop rabbit racing raiders
    rainbow ranger rangers raymond rebecca redsox redskins richard robert robot robotics robots rocket
    rockstar ronaldo root runner russia sabrina samantha samson samsung samurai sandra saturday scarface
    school scooter scorpion scotland secret secretsecret secure security senior september serenity service
    shadow shannon shelby sierra silver simple simulation slayer smokey snickers snoopy soccer sophie sparky
    spartan spider spiderman spring squirrel stanley starwars startrek steelers stella steven strawberry
    student success summer sunday sunflower sunset sunshine super superman superstar support surfer sweet
    sweetie swordfish sydney system taylor teacher temp tempest temporary tennis teresa test tester testing
    testtest theman therock thomas thunder thunderbird thursday tiffany tiger tigers tigger titanic toor
    toyota trinity trouble trustno trustnoone turtle tuesday twitter undertaker united user username valentine
    vampire vanessa victor victoria viking vincent virginia volcano walter warcraft warrior warriors wednesday
    welcome werder western whatever william williams willow windows winner winston winter wizard wolves wonder
    wordpass xavier yamaha yankee yankees yellow zaq zaqwsx zaqxsw zxcv zxcvbn zxcvbnm
    """.split()  # noqa: SIM905 - a page of words reads better than a page of quotes
)
ROWS = ("01234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "zxcvbnm", "1qaz2wsx3edc4rfv5tgb")
SHORTEST_RUN = 4
_LOOK_ALIKE = str.maketrans("0134578@$!|", "oieastbasil")
_AROUND = re.compile(r"^[^a-z]+|[^a-z]+$")
_BEHIND = re.compile(r"[^a-z]+$")
FEWEST_LETTERS = 4
SHORTEST_WORD = 4


def is_common(password: str) -> bool:
    """Whether a password is one of the first that an attacker would try."""
    lower = password.casefold().strip()
    inside = {lower, _AROUND.sub("", lower), _once(lower)}
    # A sign at the end is decoration, one in the middle stands for a letter.
    inside |= {_AROUND.sub("", part.translate(_LOOK_ALIKE)) for part in (lower, _BEHIND.sub("", lower))}
    letters, digits = (re.sub(others, "", lower) for others in ("[^a-z]", "[^0-9]"))
    woven = len(letters) + len(digits) == len(lower) and _is_walk(letters) and _is_walk(digits)
    few = lower.isdecimal() or len(set(lower)) < FEWEST_LETTERS
    listed = {password.casefold(), lower, *inside} & whole_passwords() or inside & words_of_passwords()
    return bool(inside & WORDS or listed) or _is_walk(lower) or woven or few


@cache
def whole_passwords() -> frozenset[str]:
    """Every password and word of the lists; read when the first password is set."""
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    django = Path(__file__).with_name("common-passwords.txt.gz")
    with gzip.open(django, "rt", encoding="utf-8") as lines:
        ours = {line.strip() for line in lines}
    return frozenset(ours.union(*FREQUENCY_LISTS.values()))


@cache
def words_of_passwords() -> frozenset[str]:
    """Words that are common inside passwords, with something before or behind."""
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    lists = ("passwords", "male_names", "female_names")
    words = {word for name in lists for word in FREQUENCY_LISTS[name]}
    return frozenset(word for word in words if len(word) >= SHORTEST_WORD and word.isalpha())


def _once(word: str) -> str:
    """passpass → pass"""
    half = len(word) // 2
    return word[:half] if word[:half] == word[half:] else word


def _is_walk(word: str) -> bool:
    """Whether it consists only of runs along the keyboard or the alphabet, forwards or backwards."""
    start = 0
    while start < len(word):
        longest = max(_run(word[start:], row) for line in ROWS for row in (line, line[::-1]))
        if longest < SHORTEST_RUN:
            return False
        start += longest
    return True


def _run(text: str, row: str) -> int:
    length = min(len(text), len(row))
    while length and text[:length] not in row:
        length -= 1
    return length
