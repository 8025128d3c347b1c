"""Orders to the chooser within untrusted text are set aside before meaning is compared; the rest stays as it was.

A language model is shielded by fences and by scoring options alone. A sentence encoder has no fences: an order that
stands in a text would pull its meaning about, so the order is left out of what is compared.
"""

import re
from functools import lru_cache

from norm_core.engines.prompt import disarmed

# Where one clause of a text ends: any script's full stop, a line, a semicolon, a bracket, or an em dash.
_CLAUSE_END = re.compile(r"(?<=[.!?;:。！？；：…])\s*|[\n\r]+|\s+(?=[(\[{<‹])|(?<=[)\]}>›])\s+|\s+[—–]\s+|\s-{2,}\s")

_CHOICE = r"(?:option|answer|candidate|choice|action|letter|number|opción|réponse|antwort|opzione|选项|答案)"
_LABEL = r"(?:[\"'(\[]?\b[A-Z0-9]\b[\"')\]]?)"
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:ignore|disregard|forget|override|bypass|skip)\b.{0,40}"
        r"\b(?:rules?|instructions?|prompts?|norms?|vetoes|veto|above|previous|policy|policies|others?|constraints?)\b",
        rf"\b(?:the\s+)?(?:correct|right|best|only|true|valid|expected)\s+(?:safe\s+)?{_CHOICE}\s*(?:is|=|:)",
        rf"\b(?:choose|pick|select|answer|output|return|print|reply|respond|vote)\b.{{0,30}}\b{_CHOICE}\b",
        r"\b(?:you|the (?:robot|model|assistant|system|selector))\s+(?:must|should|shall|have to|are to|has to|will)\s+"
        r"(?:now\s+)?(?:always\s+)?(?:choose|pick|select|answer|output|obey|veto|rank|score|prefer)\b",
        r"^\W*(?:system|assistant|developer|admin|user|override|instructions?)\s*(?:prompt|message|note)?\s*:",
        r"\b(?:system|developer|admin(?:istrator)?)\s+(?:prompt|message|override|note|mode)\b",
        r"\b(?:veto|reject|discard|exclude|rule out|score|rank)\s+(?:all|every|each|the|any)\s+(?:the\s+)?"
        r"(?:others?|rest|remaining|options?|candidates?)",
        r"\b(?:probability|score|weight)\s*(?:of|=|:|to)\s*(?:1|one|100|0|zero)\b",
        r"\bas an ai\b|\bjailbreak\b|\bnew instructions?\b|\bprompt injection\b",
        r"(?:‹|<)\|?/?\w+\|?(?:›|>)|\[/?INST\]|\(/?INST\]?",
        r"\b(?:ignoriere?|missachte|vergiss)\b.{0,40}\b(?:regeln?|anweisung\w*)\b|\bwähle?\b.{0,20}\b(?:option|antwort)\b",
        r"\b(?:ignore[zr]?|oublie[zr]?)\b.{0,40}\b(?:règles?|consignes?|instructions?)\b"
        r"|\bchoisi(?:s|ssez|r)\b.{0,20}\b(?:option|réponse)\b",
        r"\b(?:ignora|ignore|olvida)\b.{0,40}\b(?:reglas?|instrucciones)\b|\b(?:elige|escoge)\b.{0,20}\bopción\b",
        r"\b(?:ignora|dimentica)\b.{0,40}\b(?:regole|istruzioni)\b|\bscegli\b.{0,20}\bopzione\b",
        r"(?:忽略|无视|忘记).{0,20}(?:规则|指令|指示|提示)|(?:选择?|回答|输出)\s*(?:选项|答案)?\s*[A-Za-z0-9]",
        r"(?:否决|排除|淘汰).{0,4}(?:其他|其它|其余|所有|全部)|(?:正确|唯一|最佳)的?(?:选项|答案)"
        r"|(?:系统|管理员|开发者)(?:提示|命令|消息|指令|模式)|新指令|越狱|(?:不要|别)管.{0,6}(?:规则|指令)",
        r"\bthe answer\s*(?:is|=|:)",
        r"(?:ルール|指示|命令).{0,10}無視|選択肢?\s*[A-Z].{0,6}選",
        r"игнориру\w*.{0,40}(?:правила|инструкци\w*)|выбер\w*.{0,20}(?:вариант|ответ)",
    )
)  # fmt: skip
# A label is an order only where nothing else is named: "choose C" is one, "choose a plate" is not.
_BARE_LABEL = re.compile(
    rf"\b(?:[Cc]hoose|[Pp]ick|[Ss]elect|[Aa]nswer|[Oo]utput|[Rr]eply|CHOOSE|PICK|SELECT|ANSWER|OUTPUT)\s+"
    rf"(?:with\s+|only\s+|just\s+)*{_LABEL}(?:\s*(?:now|instead|please|only|always|and nothing else))*\s*[.!?;:,)]*$"
)


# A quotation in which the prompt's own fences are forged: from one fence line to the next, or to the end.
_FORGED = re.compile(r"^[ \t]*={3,}[^\n]*(?:\n(?![ \t]*={3,})[^\n]*)*(?:\n[ \t]*={3,}[^\n]*)?", re.MULTILINE)
# Scripts without spaces take about two characters a word.
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\s\u3040-\u30ff\u3400-\u9fff]+")
# Fewer words than this ahead of an order are part of it, as "please" or "dear robot".
_FEWEST_WORDS = 3


@lru_cache(maxsize=8192)
def meaning(text: str) -> str:
    """What of a text is compared: all but orders; where nothing is left, nothing is.

    An order is cut from where it begins to the end of its clause. What stands before stays, or an order put
    behind what another does would make them vanish.
    """
    return " ".join(filter(None, map(_without_order, _clauses(_FORGED.sub("\n", disarmed(text))))))


def is_order(clause: str) -> bool:
    """True where a clause tells the chooser how to choose."""
    return _begin(clause.strip()) is not None


def _without_order(clause: str) -> str:
    begin = _begin(clause)
    if begin is None:
        return clause
    before = clause[:begin].rstrip(" ,:;-—–")
    return before if len(_WORDS.findall(before)) >= _FEWEST_WORDS else ""


def _begin(clause: str) -> int | None:
    """Where the first order in a clause begins."""
    return min(
        (found.start() for pattern in (*_ORDERS, _BARE_LABEL) if (found := pattern.search(clause))), default=None
    )


def _clauses(text: str) -> list[str]:
    return [clause.strip() for clause in _CLAUSE_END.split(text) if clause and clause.strip()]
