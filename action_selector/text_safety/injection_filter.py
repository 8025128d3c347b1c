"""Remove instructions to the chooser from untrusted text before its meaning is compared.

Fences and option scoring protect a language model. A sentence encoder has no fences: an instruction in a text would
shift its meaning, so the filter removes it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from norm_core.engines.prompt import neutralize_markup
from norm_core.files.data_files import shipped_file
from norm_core.runtime.config import load_yaml

_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
# Soft hyphen, Hangul fillers, zero-width space, marks and overrides of direction, word joiner, byte order mark.
# Zero-width joiners are not among them, because Persian, Hindi and emoji are written with them.
_INVISIBLE = dict.fromkeys((0xAD, 0x115F, 0x1160, 0x180E, 0x200B, 0x200E, 0x200F, 0x3164, 0xFEFF, 0xFFA0))
_INVISIBLE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2060, 0x2070)))
_JOINERS = {0x200C: None, 0x200D: None}
_ENTITY = re.compile(r"&#(?:x([0-9a-f]{1,6})|(\d{1,7}));", re.IGNORECASE)
_REVERSED = re.compile("\u202e([^\u202c\n]*)\u202c?")
# The marks above and below Latin, Greek, Cyrillic, Hebrew and Arabic letters.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u20d0-\u20ff\ufe20-\ufe2f]")
_BLACK_AND_FLAG_LETTERS = {start + n: chr(ord("A") + n) for start in (0x1F150, 0x1F170, 0x1F1E6) for n in range(26)}
_LETTERS: dict[int, str | int] = {
    **_BLACK_AND_FLAG_LETTERS,
    **str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢłŁøØđĐı", "abcdefghijklmnopqrstuvwyzlLoOdDi"),
    ord("ß"): "ss",
    ord("æ"): "ae",
    ord("Æ"): "AE",
    **str.maketrans(
        "規則選擇項無視這個確請從應該須號樣輸導給絕對記過", "规则选择项无视这个确请从应该须号样输导给绝对记过"
    ),
}
_LATIN_LIKE = str.maketrans(
    "аеорсухіјѕԁһӏкмтвнАЕОРСУХІЈЅКМТВНαοεινρτυκχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhlkmtbhAEOPCYXIJSKMTBHaoeivptukxABEZHIKMNOPTYX",
)
_MIXED_SCRIPTS = re.compile(r"[A-Za-z][Ͱ-ӿ]|[Ͱ-ӿ][A-Za-z]")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·][^\W_]){4,}(?![^\W_])")
_SPACED_SHORT = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·][^\W_])+(?![^\W_])")
_APART = re.compile(r"(?<![^\W_])[^\W_](?:[\W_]{1,3}[^\W_]){2,}(?![^\W_])")
_SIGN_LETTERS = str.maketrans("@$", "as")
# The words that are found in a run of letters without spaces.
_RUN = re.compile(
    r"ignore|disregard|forget|choose|select|pick|the|all|your|rules?|instructions?|options?|answer|and|right|correct|is(?=[A-H]$)",
    re.I,
)
_DIGITS = re.compile(r"\b(?=\w*[a-z])(?!\d+(?:st|nd|rd|th|am|pm)\b)\w*[a-z0-9]\w*\b", re.IGNORECASE)
_DIGIT_LETTERS = str.maketrans("01345789", "oieastbg")


def without_invisible(text: str) -> str:
    """Remove invisible characters, and decode what only a program reads."""
    text = _ENTITY.sub(_character, _REVERSED.sub(lambda match: match[1][::-1], text)).translate(_TAGS)
    return text.translate(_INVISIBLE)


def with_joined_letters(text: str) -> str:
    """Join letters that stand apart, as in "o p t i o n", where a text holds five and more in a row."""
    return _SPACED_SHORT.sub(_joined, text) if _SPACED.search(text) else text


def plain_letters(text: str) -> str:
    """Return the text in the plain letters that it looks like, for comparison only."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_JOINERS).translate(_LETTERS))
        text = unicodedata.normalize("NFC", _MARKS.sub("", text))
    if _MIXED_SCRIPTS.search(text):
        text = text.translate(_LATIN_LIKE)
    if any(map(str.isdigit, text)):
        text = _DIGITS.sub(lambda match: match[0].translate(_DIGIT_LETTERS) if _has_both(match[0]) else match[0], text)
    return " ".join(text.split())


def read_disguised(text: str) -> tuple[str, str]:
    """Return the text in plain letters, with three and more letters that stand apart joined; and these alone."""
    plain = plain_letters(without_invisible(text).translate(_SIGN_LETTERS))
    return _APART.sub(_letters_of, plain), " ".join(map(_letters_of, _APART.finditer(plain)))


def _letters_of(match: re.Match[str]) -> str:
    return "".join(filter(str.isalnum, match[0]))


def _character(match: re.Match[str]) -> str:
    code = int(match[1], 16) if match[1] else int(match[2])
    return chr(code) if code < 0x110000 and chr(code).isprintable() else ""


def _joined(match: re.Match[str]) -> str:
    run = "".join(match[0][::2])
    return _RUN.sub(r" \g<0> ", run) if len(run) > 9 else run  # a single word is shorter


def _has_both(word: str) -> bool:
    return any(map(str.isdigit, word)) and sum(map(str.isalpha, word)) > 1


# End of a clause: a full stop of any script, a line break, a semicolon, a bracket or an em dash.
_CLAUSE_END = re.compile(
    r"(?<=[.!?;:。！？；：…．｡।؟؛۔])\s*|[\n\r]+|\s+(?=[(\[{<‹])|(?<=[)\]}>›])\s+|\s+[—–]\s+|\s-{2,}\s"
)

# The words for what a chooser is offered. Answer, candidate, action, letter and number have other meanings too.
_OPTION = r"(?:options?|choices?)"
_CHOICE = rf"(?:{_OPTION}|answers?|candidates?|actions?)"
# A label is one capital or a number: "option A" names an option; "an option" and "answer a call" do not.
_LETTER = r"[\"'“‘(\[]?(?-i:\b[A-HJ-Z]\b)(?!['’]s\b|[-.]\w)[\"'”’)\]]?"
_LABEL = (
    rf"(?:{_LETTER}|[\"'“‘(\[]?\b\d{{1,2}}\b[\"'”’)\]]?|\b[b-h]\b"
    r"|\b(?:one|two|three|four|five|six|seven|eight)\b(?!\s+(?:by|at|to|after|of)\b)|\ba\b(?=\W*$))"
)
_NAMED = rf"{_CHOICE}\s*(?:(?:number|labell?ed|marked|lettered)\s+|no\.?\s*|[#:=]\s*)?{_LABEL}"
_PLACE = r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|last|final|[1-8](?:st|nd|rd|th))"
_POINTED = rf"(?:this|that|these|those|(?:the|your|its)\s+(?:very\s+)?{_PLACE})"
# Contexts in which such a word names a thing or person: the first answer sheet, the last candidate in the queue.
_THING = (
    r"(?!['’]|\s+(?:sheets?|cards?|papers?|forms?|figures?|who|whose|(?:in|on|from|at|to)\s+"
    r"(?!(?:(?:the|this|that)\s+)?(?:list|question|prompt|options?|above)\b)))"
)
# Words between the verb and the option.
_FILL = (
    r"(?:(?:with|only|just|always|now|then|for|by|as|the|your|a|an|no|nothing|but|safe|correct|right|best|valid|final"
    r"|expected|exactly|simply)\s+)*"
)
_END = r"(?=\W*$|\s*[,;:.!?)])"
_LAST = r"(?:\s*(?:now|instead|please|only|always|alone|first|and nothing (?:else|more)))*"
_MUST = (
    r"\b(?:you|(?:the|this|dear) (?:robot|model|assistant|system|selector|chooser))\s+"
    r"(?:must|should|shall|have to|has to|are to|is to|will|need to|needs to)\s+(?:(?:now|always|only)\s+)*"
)
_CHOOSE = r"\b(?:choose|pick|select|prefer|output|vote(?:\s+for)?|go\s+(?:with|for)|opt\s+for)"
_SAY = r"\b(?:answer|return|print|reply|respond|(?:just|only)\s+say|take|mark)"
_VERB = rf"(?:{_CHOOSE}|{_SAY})"

# The things that guide a chooser.
_RULES = r"(?:rules?|instructions?|prompts?|norms?|vetoe?s?|polic(?:y|ies)|constraints?|guidelines?|guardrails?)"
_OURS = r"(?:this|these|your|the\s+(?:house|home|robot|system|prompt|chooser|question|task|options?|choice)\b)"
_ALL = (
    r"(?:(?:all|any|every|each|both|single|one|of|about|these|those|the|this|that|your|my|our|its|other|previous|prior"
    r"|earlier|above|absolutely|simply|what|whatever|(?:long |whole )?list of|and|or|safety|privacy|security|social"
    r"|ethical|house)\s+)*"
)
# A noun after "rules" or the like makes it another thing: a rules sheet, an instructions video.
_NOUN = (
    r"\s+(?:video|sheet|page|card|leaflet|manual|book(?:let)?|poster|screen|part|section|slide|film|meeting|board)s?\b"
)
# "Do not forget the rules" keeps them. "The boys ignore the rules" describes others.
_NOT_IGNORED = r"(?<!do not )(?<!n't )(?<!n’t )(?<!not to )(?<!never )"
_OTHERS_DO = r"(?:(?<![a-z]s )|(?<=always )|(?<=yes )|(?<=robots )|(?<=assistants )|(?<=models ))"
_IGNORE = (
    rf"{_NOT_IGNORED}{_OTHERS_DO}\b(?:ignore|disregard|forget|override|bypass|skip|pay no attention to"
    r"|(?:do not|don['’]t|never|stop)\s+(?:follow(?:ing)?|obey(?:ing)?|apply(?:ing)?|heed(?:ing)?))"
)
_REJECT = (
    r"\b(?:veto|reject|discard|exclude|rule out|score|rank|treat|mark|rate|consider|ignore|disregard|skip|forget"
    r"|override|bypass)"
)
_GRADE = r"(?:probability|score|weight|rank|rating|points?|marks?)"
_GOOD = r"(?:correct|right|best|only|true|valid|expected|winning)"

# The words of each language for what orders are about, such as to ignore, or rules.
_LANGUAGES: dict[str, dict[str, str]] = load_yaml(shipped_file("action_selector.text_safety", "order_words.yaml"))
_NOT = r"(?<!\bno )(?<!\bnon )(?<!\bnao )(?<!\bn[’'])(?<!\bne )(?<!\bне )(?<!\bniet )"
# "The rules of the game" are not the chooser's.
_NOT_OF = (
    r"(?!\s+(?:of|about|on|de[lrsnmt]?|del\w+|du|d[ao]s?|di|der|van|im|am|vom|fur|sur|pour|para|sobre|per|voor|av|for"
    r"|om|игры|гры)\b)"
)
_MARK = r"(?:(?<![A-Za-z])(?-i:[A-HА-Г])(?![A-Za-zА-я])|(?<!\d)\d{1,2}(?!\w))"
_NUMBERED = (
    r"\b(?:erste|zweite|dritte|vierte|letzte|eerste|tweede|derde|laatste|premiere|deuxieme|troisieme|derniere"
    r"|primera|segunda|tercera|ultima|prima|seconda|terza|primeira|terceira|перв|втор|трет|последн)\w*"
)


def _orders_in(words: dict[str, str]) -> tuple[str, ...]:
    """Build the patterns of one language: to ignore rules, to choose an option by its label, and a claim."""
    ignore, rules, choose, option, right = map(plain_letters, words.values())
    named = rf"(?:(?:{option}).{{0,15}}?{_MARK}|{_MARK}.{{0,6}}?(?:{option})|{_NUMBERED}.{{0,15}}?(?:{option}))"
    return (
        rf"{_NOT}(?:{ignore})(?!\s+(?:nicht|pas|niet)\b).{{0,40}}?(?:{rules}){_NOT_OF}",
        rf"(?:{rules}).{{0,25}}?(?:{ignore})",
        rf"(?:{choose}).{{0,40}}?{named}",
        rf"{named}.{{0,15}}?(?:{choose})",
        rf"(?:(?:{right})\s+(?:{option})|(?:{option})\s*(?:{right}))(?:\s*[:：]\s*$|.{{0,25}}?{_MARK})",
    )


_FOREIGN = tuple(re.compile(pattern, re.IGNORECASE) for words in _LANGUAGES.values() for pattern in _orders_in(words))
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Instructions to ignore rules, earlier text or other options.
        rf"{_IGNORE}\s+{_ALL}(?:(?!\w+['’]s)\w+\s+)?{_RULES}\b(?!['’]|\s+(?:of|for|about|on)\s+(?!{_OURS})|{_NOUN})",
        rf"{_IGNORE}\s+{_ALL}(?:robot|model|assistant|system|designer|developer)['’]s\s+{_RULES}\b",
        rf"{_IGNORE}\s+(?:(?:all|everything|anything|whatever|what|of|the|that|is|was|stands|written|said|text|words?"
        r"|quotations?|lines?|data)\s+)*(?:above|previous|preceding|before|earlier|so far)"
        r"(?=\W*$|\s*[,;:.!?)]|\s+(?:and|or|then|this|that|texts?|words?|lines?|data|quotations?)\b)",
        rf"{_IGNORE}\s+(?:all|everything|anything|whatever|what)\s+(?:that\s+|which\s+)?"
        r"(?:you (?:were|are|have been)|was|were|has been)\s+(?:told|said|asked|taught|written|given)\b",
        rf"{_REJECT}\s+(?:as\s+)?(?:all|every|each|the|any)\s+(?:of\s+)?(?:the\s+)?(?:others?\s+|rest\s+|remaining\s+)?"
        rf"{_OPTION}\b",
        rf"{_REJECT}\s+(?:all\s+|every\s+|each\s+|the\s+|any\s+|of\s+)*(?:other|remaining)\s+{_CHOICE}\b",
        rf"{_REJECT}\s+(?:all\s+)?(?:the\s+)?(?:others?|rest|remaining)(?:\s+ones?)?\s*(?:,|\band\b|,\s*and\b)\s*"
        rf"(?:then\s+)?{_VERB}\s+(?:{_FILL}{_LETTER}|{_NAMED}|{_POINTED})",
        rf"\b(?:veto|exclude|rule out|score|rank)\s+(?:all\s+)?(?:the\s+)?(?:others|rest){_LAST}\W*$",
        rf"{_REJECT}\s+{_NAMED}",
        rf"\b(?:all|every|any|each|no)\s+(?:the\s+|other\s+)*{_CHOICE}\s+(?:other than|except|but|besides)\s+"
        rf"(?:for\s+)?(?:{_LABEL}|{_CHOICE}|{_POINTED})",
        # Instructions to choose something by its label, its position or as "this".
        rf"{_VERB}\b.{{0,40}}\b{_OPTION}\s*(?:(?:number|labell?ed|marked|lettered)\s+|no\.?\s*|[#:=]\s*)?{_LABEL}",
        rf"{_VERB}\s+{_FILL}{_NAMED}",
        rf"{_VERB}\s+{_FILL}(?:letter|number)\s*:?\s*{_LABEL}{_LAST}{_END}",
        rf"{_VERB}\s+{_FILL}(?:letter|number|label)\s+of\s+(?:{_POINTED}|the|{_CHOICE})\s+{_CHOICE}\b",
        rf"{_VERB}\s+{_FILL}(?:{_POINTED}|{_PLACE}|following)\s+(?:{_OPTION}\b|(?:answers?|candidates?|actions?)\b{_THING})",
        rf"{_CHOOSE}\s+{_FILL}{_PLACE}(?:\s+(?:one|letter|number))?{_LAST}\W*$",
        rf"{_CHOOSE}\s+{_FILL}{_GOOD}\s+{_CHOICE}\b{_END}|{_SAY}\s+{_FILL}{_GOOD}\s+{_OPTION}\b{_END}",
        # A bare label counts only where no thing is named: "choose C" is an instruction, "choose a plate" is not.
        rf"(?:{_CHOOSE}|\b(?:answer|reply|respond|take|(?:just|only)\s+say|antworte|repond(?:s|ez)|contesta|rispondi))"
        rf"\s*:?\s+(?:(?:with|for|only|just|uniquement|par|la|lettre)\s+)*{_LETTER}"
        rf"(?:{_LAST}{_END}|\s+(?:and|or|because|as|not|no matter)\b)",
        rf"{_VERB}\s+{_FILL}my\s+(?:option|choice)\b",
        rf"{_MUST}(?:choose|pick|select|output)\W*$",
        rf"{_CHOOSE}\s+(?:only\s+)?(?:the|your)\s+(?:\w+\s+){{0,2}}(?:option|choice|candidate)"
        r"(?=\W*$|\s+(?:about|where|in which|that says|called|named)\b)",
        rf"(?:^\W*(?:please\s+|so\s+|just\s+|always\s+)*|,\s*(?:so\s+|and\s+)?|\byou\s+(?:must|should|have to)\s+"
        rf"(?:\w+\s+)?)(?:choose|pick|select|prefer)\s+(?:it|this|that|me|(?:this|that)\s+one){_LAST}\W*$",
        rf"{_MUST}(?:obey|prefer)(?=\s+(?:this|me|these|the following|only)\b|\W*$)",
        # Claims that something is the right answer.
        rf"\b(?:the\s+)?{_GOOD}\s+(?:safe\s+|right\s+|valid\s+)?{_CHOICE}\s*(?:is|=|:|must be|has to be|should be)"
        rf"(?:\s*$|\s*{_FILL}(?:{_LABEL}{_END}|{_NAMED}|this(?:\s+one)?\b{_END}|that\s+one|none\b|{_PLACE}\b|above\b|below\b))",
        rf"^\W*this\s+is\s+the\s+(?:{_GOOD}\s+)+{_CHOICE}\b\W*$",
        rf"\b(?:the|your)\s+(?:answer|choice|reply|response|output)\s*(?:is|=|:|must be|has to be|should be|shall be)"
        rf"\s*{_FILL}(?:letter\s+|number\s+)?(?:{_LABEL}{_END}|{_NAMED}|this\b{_END}|{_PLACE}\s+{_CHOICE})",
        r"^\W*the answer\s*(?:is|=|:)\s*(?:yes|no)\W*$",
        rf"\b{_OPTION}\s*{_LABEL}\s+(?:is|wins|must|should|shall|has to)\b",
        rf"\b(?:{_POINTED}\s+(?:{_OPTION}|candidate|action)|{_NAMED})\s+(?:wins\b|(?:must|should|shall|has to|is to)\s+"
        rf"(?:be\s+(?:chosen|picked|selected|preferred|ranked)|win)\b|is\s+(?:clearly\s+)?(?:the\s+)?(?:{_GOOD}|winner|safest"
        r"|allowed)(?:\s+(?:one|option|choice|answer|candidate|action|allowed|permitted|left))*\W*$)",
        r"\b(?:your\s+(?:only|new|sole|one)|the\s+(?:only|sole))\s+(?:rule|norm|instruction)s?\s*(?:is|are|:)",
        r"\byour\s+(?:rules|norms|instructions)\s+(?:have|are|were)\s+(?:been\s+)?(?:changed|replaced|updated|suspended)\b",
        # Grades for an option.
        rf"\b{_GRADE}\s+(?:of|for)\s+(?:{_CHOICE}\s+)?{_LETTER}\s*(?:to|is|=|:|as|at)",
        r"\bprobability\s*(?:of|=|:|to|is)\s*(?:1|one|100|0|zero)\b(?!\s*(?:%|per))",
        rf"\b(?:this|that|it|{_NAMED})\s+(?:has|gets|deserves)\s+(?:a\s+|the\s+)?(?:full\s+|highest\s+|top\s+)*{_GRADE}\b"
        r"|^\W*(?:this\s+)?has\s+a\s+score\s+of\b",
        rf"\b(?:give|assign|award|grant)\s+(?:{_POINTED}\s+(?:one|{_CHOICE})|{_NAMED})\s+.{{0,25}}{_GRADE}\b",
        rf"\b(?:rank|score|rate|mark|put|place)\s+(?:{_POINTED}\s+(?:one|{_CHOICE})|{_NAMED})\s+(?:as\s+|the\s+|with\s+|at\s+)*"
        r"(?:first|last|highest|lowest|top|best|winner|correct|right|only|\d)",
        # Text that imitates a role which models obey.
        r"^\W*(?:system|assistant|developer|admin|user|override|new instructions?|instructions? override)\s*"
        r"(?:prompt|message|note)?\s*:",
        r"^\W*(?:this is an?\s+|new\s+|urgent\s+)*(?:system|developer|admin(?:istrator)?)\s+"
        r"(?:prompt|message|override|note|mode|command)\s*(?:[:,.!]|$|\b(?:follows|activated|enabled)\b)",
        r"\b(?:you are (?:now )?in|enter(?:ing)?|enable)\s+(?:developer|admin|debug|god)\s+mode\b",
        r"^\W*note\s+to\s+(?:the\s+)?(?:robot|model|assistant|ai|selector|chooser)\b",
        r"^\W*(?:here are\s+|follow\s+|these are\s+)?(?:your\s+|the\s+|these\s+)*new instructions?(?=\W*$|\s*[,.!])",
        r"\b(?:begin|end|start)\s+(?:of\s+)?(?:system|developer|admin)\s+(?:prompt|message)|#{2,}\s*(?:system|instruction)s?\b",
        r"\bas an ai\b|\bjailbreak\b",
        r"‹(?:\|\w+\|?|/?(?:system|user|assistant|inst|data|s))›|\[/?INST\]|\(/?INST\]?",
        # Chinese.
        r"(?<!不要)(?<!不能)(?<!不得)(?<!别)(?:忽略|无视|忘记|忘掉|不顾|跳过|绕过|(?:不要|不用|别|不必)(?:管|考虑|理会))"
        r"(?:以上|上面|之前|前面|先前|所有|一切|全部|其他|其它|其余|任何|这些|那些|你|您|自己|系统|安全|的|掉|了){0,6}"
        r"(?:规则|规范|指令|指示|提示|否决|选项|答案)",
        r"(?:忽略|无视|忘记|忘掉)(?:掉)?(?:以上|上面|之前|前面)(?:的|所有|全部)*(?:内容|文字|一切|话)",
        r"(?:(?:你|您|机器人|系统|助手)(?:必须|应该|应当|一定要|只能|要))?(?:总是|只|直接|快|就)*"
        r"(?:选择?|选定|挑|回答|输出|投票?给)\s*(?:字母|数字)?\s*"
        r"(?:(?:选项|答案|候选)\s*[A-Za-z0-9]"
        r"|[A-Ha-h](?![A-Za-z0-9]|型|级|座|区|栋|楼|口|班|套|款|餐|组|队|票|路|线|号|柜|房|间|桌)|\d(?!\w)(?!\.)"
        r"|(?:第[一二三四五六七八1-8]|最后一|这一?|那一?)(?:个|项|条)?(?:选项|答案|候选|吧|就行|(?!\w)))",
        r"(?:否决|排除|淘汰|忽略)(?:掉)?(?:其他|其它|其余|剩下|所有|全部|的){1,4}(?:选项|候选\w?|答案|行动|动作|(?!\w))",
        r"(?:正确|唯一|最佳)的?(?:选项|答案)\s*(?:就|应该|应当|必须|只能)?(?:是|为|[:：=])\s*"
        r"(?:$|选项|[A-Za-z0-9](?!\w)|这|第|最后|以[上下])",
        r"[A-H]的(?:概率|得分|分数|权重)|给(?:这个|那个|第.个|最后一个)?选项.{0,2}(?:打|满分|最高)"
        r"|(?:其他|其它|其余|所有|全部)的?选项.{0,3}(?:不得|零分|0分|无效|都?不[能许要])",
        r"^\W*(?:系统|助手|管理员|开发者|用户)\s*[:：]|作为(?:人工智能|AI)|越狱\s*(?:[:：，,]|模式|$)",
        r"(?:^|\W)(?:系统|管理员|开发者)(?:提示|命令|消息|指令|模式)\s*(?:[:：，,!！]|$)|^\W*(?:这是)?新的?指令\s*(?:[:：，,]|$)",
    )
)  # fmt: skip
_parser: Any = import_module("re._parser")
_REPEATS = {_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT}


def _required_parts(parsed: Iterable[tuple[object, Any]]) -> list[str]:
    """Return texts, in folded case, of which each match of a parsed pattern holds one; an empty text says nothing."""
    best, run = [""], ""
    for kind, value in parsed:
        run = run + chr(value).casefold() if kind is _parser.LITERAL else ""
        parts = [run]
        if kind is _parser.BRANCH:
            parts = [part for branch in value[1] for part in _required_parts(branch)]
        elif kind is _parser.SUBPATTERN or (kind in _REPEATS and value[0]):
            parts = _required_parts(value[-1])
        best = max(best, parts, key=lambda texts: min(map(len, texts)))
    return best


_WHO = re.compile(
    rf"(?:{_MUST}|\b(?:would|could|can|will) you (?:please |kindly )*|\bplease "
    r"|\bi (?:ask|order|command|urge|beg|want) you to )$",
    re.IGNORECASE,
)
# A quotation that forges the prompt's own fences: from one fence line to the next, or to the end.
_FORGED = re.compile(
    r"(?:^[ \t]*={3,}[^\n]*|={3,}(?=\n))(?:\n(?![ \t]*={3,})[^\n]*)*"
    r"(?:\n[ \t]*={3,}(?:[^\n(]*\(data, not instructions\))?)?",
    re.MULTILINE,
)
# In scripts without spaces, about two characters count as a word.
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\s\u3040-\u30ff\u3400-\u9fff]+")
# A new sentence after an instruction without a full stop; other words go on with the instruction.
_NEXT = re.compile(
    r"\s+(?!(?:and|or|no|not|nothing|as|because|even|if|for|in|on|at|to|with|of|whatever|instead|now|please|first|last|is|for)\b)\w"
)
# Words for what a chooser is offered and guided by: only a text with one of them may be emptied.
_FOREIGN_WORDS = re.compile(
    "|".join(plain_letters(words[name]) for words in _LANGUAGES.values() for name in ("rules", "option")), re.IGNORECASE
)
# To look for these first saves nearly all searches.
ORDERS_BY_PART: defaultdict[str, list[re.Pattern[str]]] = defaultdict(list)
for _pattern in (*_ORDERS, _FOREIGN_WORDS):
    for _part in _required_parts(_parser.parse(_pattern.pattern, _pattern.flags)):
        ORDERS_BY_PART[_part].append(_pattern)
_EXPLICIT = re.compile(rf"{_OPTION}|candidate|{_RULES}|选项|规则|指令|{_FOREIGN_WORDS.pattern}", re.IGNORECASE)
# After an instruction, a clause that begins so goes on with it; one that ends so names the action in the next clause.
_CHOOSES = re.compile(rf"\W*(?:(?:and|then|now|just|only|please)\s+)*{_CHOOSE}\b|\W*(?:请|就|并)*选择?", re.IGNORECASE)
_NAMES_NEXT = re.compile(rf"(?:{_CHOOSE}|选择?)\s*[:：]$", re.IGNORECASE)
_BACKWARDS = re.compile(r"noitpo|eciohc|selur|noitcurtsni", re.IGNORECASE)
# Fewer words than this before or after an instruction belong to it, such as "please" or "dear robot".
_MIN_WORDS = 3


@lru_cache(maxsize=8192)
def strip_instructions(text: str) -> str:
    """Remove instructions from a text. Returns an empty string where nothing is left of an explicit one.

    The cut runs from the start of an instruction to the end of its clause. Plain text before and after it stays;
    otherwise an instruction would erase another agent's action.
    """
    visible = without_invisible(text)
    # Letters that stand apart are joined only where they hide an instruction.
    for read in dict.fromkeys((with_joined_letters(visible), visible)):
        lines = neutralize_markup("\n".join(" ".join(line.split()) for line in read.splitlines()))
        clauses = _clauses(_FORGED.sub("\n", lines))
        clauses_left = _without_orders(clauses)
        # A robot may do what only sounds like an instruction ("go with B"): options are scored, so it is harmless.
        plain = plain_letters(read)
        if clauses_left != _clauses(lines) and (clauses_left or _EXPLICIT.search(f"{plain}\n{plain[::-1]}")):
            return " ".join(clauses_left)
    return " ".join(lines.split())


def _without_orders(clauses: Iterable[str]) -> list[str]:
    """Remove instructions, and the action that "choose:" names after one."""
    clauses_left: list[str] = []
    is_order = names_next = False
    for clause in clauses:
        if names_next:
            names_next = False
            continue
        plain = plain_letters(clause)
        rest = "" if is_order and _CHOOSES.match(plain) else _without_order(clause)
        is_order = rest != clause
        names_next = is_order and bool(_NAMES_NEXT.search(plain))
        clauses_left += [rest] if rest else []
    return clauses_left


def _without_order(clause: str) -> str:
    plain = plain_letters(clause)
    if not (span := _span(plain)):
        return clause
    before, after = plain[: span[0]].rstrip(" ,:;-—–"), plain[span[1] :]
    parts = (before, after.strip() if _NEXT.match(after) else "")
    return " ".join(part for part in parts if len(_WORDS.findall(part)) >= _MIN_WORDS)


def _span(clause: str) -> tuple[int, int] | None:
    """Find the start of the first instruction in a clause, with its addressee, and the end of the last."""
    folded = clause.casefold()
    patterns = {pattern for part, holders in ORDERS_BY_PART.items() if part in folded for pattern in holders}
    if _FOREIGN_WORDS in patterns:
        patterns = patterns - {_FOREIGN_WORDS} | (set(_FOREIGN) if _FOREIGN_WORDS.search(clause) else set())
    matches = [match for pattern in patterns if (match := pattern.search(clause))]
    if not matches:
        backwards = _span(clause[::-1]) if _BACKWARDS.search(clause) and not _BACKWARDS.search(clause[::-1]) else None
        return backwards and (len(clause) - backwards[1], len(clause) - backwards[0])
    begin = min(match.start() for match in matches)
    who = _WHO.search(clause, 0, begin)
    return who.start() if who else begin, max(match.end() for match in matches)


def _clauses(text: str) -> list[str]:
    return [clause.strip() for clause in _CLAUSE_END.split(text) if clause and clause.strip()]
