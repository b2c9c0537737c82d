"""Words that carry no topic: questions are full of them, and they match every document.

They are indexed like all words (a query of nothing else still works) but marked uninformative in a
query. Which lists exist, and how long they are, is a measurement: see docs/decisions/analyser.md.
Contractions stand without their apostrophe ("dont"), the form the analyser gives them.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH = _words(
    """
    a about am an and any are as at be been being but by can could did do does doing for from had has
    have having he her hers him his how i if in into is it its me my not of on or our ours she should
    so some than that the their theirs them then there these they this those to us was we were what
    when where which who whom whose why will with would you your yours
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt
    """
)

ENGLISH_MARKS = _words(
    """
    about and been did does from how into of that the their they this what when where which who with
    would you your
    """
)
"""Frequent words by which a text is taken for English; common words of other languages are left out."""

# Only for queries that are not taken for English, and without words that are English nouns or verbs
# ("die", "war", "son", "den"): a query of two English nouns bears no mark of its language.
_GERMAN = _words(
    """
    als auch auf aus bei dass dem der des durch eine einem einen einer eines für hat hatte hatten ist
    mit nach nicht oder sich sind und unter von vom waren wann warum welche welchem welchen welcher
    welches wem wen wer werden wessen wie wird wo wurde wurden zu zum zur über
    """
)
_SPANISH = _words(
    """
    como con cuál cuáles cuándo cuánta cuánto cuántas cuántos cómo de del dónde el en era eran es fue
    fueron ha han las lo los más o para por que quién quiénes qué se su sus un una unas unos y
    """
)
_TURKISH = _words(
    """
    bir bu da daha de gibi hangi için ile kaç kim kimdir mi mu mü mı nasıl ne neden nedir nerede olan
    olarak ve çok
    """
)
_VIETNAMESE = _words(
    """
    ai bao bị bởi cho có các của gì khi là một này những nhiêu như nào ra sao thế trong tại từ và vào
    về với ở đâu đã đó được để
    """
)

STOP_WORDS = ENGLISH | _GERMAN | _SPANISH | _TURKISH | _VIETNAMESE
"""For a query that is not taken for English."""
