"""Words that carry no topic: questions are full of them, and they match every document.

They are indexed like all words (a query of nothing else still works) but marked uninformative in a
query. The lists are short on purpose; how long is a measurement, see docs/decisions/analyser.md.
Contractions stand without their apostrophe ("dont"), the form the analyser gives them.
"""

from __future__ import annotations

ENGLISH = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could
    did do does doing for from get got had has have having he her here hers him his how i if in
    into is it its just like me more most my no not of on or other our out over own so some such
    than that the their them then there these they this those through to too under up us very was
    we were what when where which while who whom whose why will with would you your
    arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont wouldnt
    """.split()
)

STOP_WORDS = ENGLISH
