"""The patterns by which an instruction to the chooser is recognised, in English, Chinese and other languages."""

import re
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from action_selector.text_safety.disguised_letters import to_plain_letters
from norm_core.files.data_files import shipped_file
from norm_core.runtime.config import load_yaml

# The words for what a chooser is offered. Answer, candidate, action, letter and number have other meanings too.
_OPTION = r"(?:options?|choices?)"
_CHOICE = rf"(?:{_OPTION}|answers?|candidates?|actions?)"
# A label is one capital or a number: "option A" names an option; "an option" and "answer a call" do not.
_LETTER = r"[\"'“‘(\[]?(?-i:\b[A-HJ-Z]\b)(?!['’]s\b|[-.]\w)[\"'”’)\]]?"
_LABEL = (
    rf"(?:{_LETTER}|[\"'“‘(\[]?\b\d{{1,2}}\b[\"'”’)\]]?|\b[b-h]\b"
    r"|\b(?:one|two|three|four|five|six|seven|eight)\b(?!\s+(?:by|at|to|after|of)\b)|\ba\b(?=\W*$))"
)
# An option by its label, as in "answer no. 3".
_NAMED_CHOICE = rf"{_CHOICE}\s*(?:(?:number|labell?ed|marked|lettered)\s+|no\.?\s*|[#:=]\s*)?{_LABEL}"
_ORDINAL = r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|last|final|[1-8](?:st|nd|rd|th))"
_DEMONSTRATIVE = rf"(?:this|that|these|those|(?:the|your|its)\s+(?:very\s+)?{_ORDINAL})"
# Not words after which an ordinal names a thing or person: the first answer sheet, the last candidate in the queue.
_NOT_A_THING = (
    r"(?!['’]|\s+(?:sheets?|cards?|papers?|forms?|figures?|who|whose|(?:in|on|from|at|to)\s+"
    r"(?!(?:(?:the|this|that)\s+)?(?:list|question|prompt|options?|above)\b)))"
)
# Words between a verb and its option.
_FILLERS = (
    r"(?:(?:with|only|just|always|now|then|for|by|as|the|your|a|an|no|nothing|but|safe|correct|right|best|valid|final"
    r"|expected|exactly|simply)\s+)*"
)
# The end of a phrase.
_END = r"(?=\W*$|\s*[,;:.!?)])"
# Words that may close an order.
_CLOSING = r"(?:\s*(?:now|instead|please|only|always|alone|first|and nothing (?:else|more)))*"
# A demand on the chooser.
_MUST = (
    r"\b(?:you|(?:the|this|dear) (?:robot|model|assistant|system|selector|chooser))\s+"
    r"(?:must|should|shall|have to|has to|are to|is to|will|need to|needs to)\s+(?:(?:now|always|only)\s+)*"
)
# Verbs that order a choice, and verbs that may also order something else.
_CHOOSE = r"\b(?:choose|pick|select|prefer|output|vote(?:\s+for)?|go\s+(?:with|for)|opt\s+for)"
_SAY = r"\b(?:answer|return|print|reply|respond|(?:just|only)\s+say|take|mark)"
_VERB = rf"(?:{_CHOOSE}|{_SAY})"

# The things that guide a chooser.
_RULES = r"(?:rules?|instructions?|prompts?|norms?|vetoe?s?|polic(?:y|ies)|constraints?|guidelines?|guardrails?)"
# Rules of these belong to the chooser.
_OWN_RULES = r"(?:this|these|your|the\s+(?:house|home|robot|system|prompt|chooser|question|task|options?|choice)\b)"
# Words between "ignore" and the rules.
_ALL = (
    r"(?:(?:all|any|every|each|both|single|one|of|about|these|those|the|this|that|your|my|our|its|other|previous|prior"
    r"|earlier|above|absolutely|simply|what|whatever|(?:long |whole )?list of|and|or|safety|privacy|security|social"
    r"|ethical|house)\s+)*"
)
# A noun after "rules" or the like makes it another thing: a rules sheet, an instructions video.
_OTHER_NOUN = (
    r"\s+(?:video|sheet|page|card|leaflet|manual|book(?:let)?|poster|screen|part|section|slide|film|meeting|board)s?\b"
)
# "Do not forget the rules" keeps them. "The boys ignore the rules" describes others.
_NOT_IGNORED = r"(?<!do not )(?<!n't )(?<!n’t )(?<!not to )(?<!never )"
_OTHERS_DO = r"(?:(?<![a-z]s )|(?<=always )|(?<=yes )|(?<=robots )|(?<=assistants )|(?<=models ))"
_IGNORE = (
    rf"{_NOT_IGNORED}{_OTHERS_DO}\b(?:ignore|disregard|forget|override|bypass|skip|pay no attention to"
    r"|(?:do not|don['’]t|never|stop)\s+(?:follow(?:ing)?|obey(?:ing)?|apply(?:ing)?|heed(?:ing)?))"
)
# Verbs that order to leave options out.
_REJECT = (
    r"\b(?:veto|reject|discard|exclude|rule out|score|rank|treat|mark|rate|consider|ignore|disregard|skip|forget"
    r"|override|bypass)"
)
# What may be given to an option.
_GRADE = r"(?:probability|score|weight|rank|rating|points?|marks?)"
_GOOD = r"(?:correct|right|best|only|true|valid|expected|winning)"

# The words of each language that orders use, such as those for "ignore" and "rules".
_LANGUAGES: dict[str, dict[str, str]] = load_yaml(shipped_file("action_selector.text_safety", "order_words.yaml"))
# Negations before a verb, as in French or Dutch.
_NOT = r"(?<!\bno )(?<!\bnon )(?<!\bnao )(?<!\bn[’'])(?<!\bne )(?<!\bне )(?<!\bniet )"
# "The rules of the game" are not those of the chooser.
_NOT_OF = (
    r"(?!\s+(?:of|about|on|de[lrsnmt]?|del\w+|du|d[ao]s?|di|der|van|im|am|vom|fur|sur|pour|para|sobre|per|voor|av|for"
    r"|om|игры|гры)\b)"
)
_FOREIGN_LABEL = r"(?:(?<![A-Za-z])(?-i:[A-HА-Г])(?![A-Za-zА-я])|(?<!\d)\d{1,2}(?!\w))"
_FOREIGN_ORDINAL = (
    r"\b(?:erste|zweite|dritte|vierte|letzte|eerste|tweede|derde|laatste|premiere|deuxieme|troisieme|derniere"
    r"|primera|segunda|tercera|ultima|prima|seconda|terza|primeira|terceira|перв|втор|трет|последн)\w*"
)
# The parser of regular expressions has no public name.
_parser: Any = import_module("re._parser")
_REPEATS = {_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT}


def _build_patterns(words: dict[str, str]) -> tuple[str, ...]:
    """Build the patterns of one language: to ignore rules, to choose an option by its label, and a claim."""
    ignore, rules, choose, option, right = map(to_plain_letters, words.values())
    before = rf"(?:{option}).{{0,15}}?{_FOREIGN_LABEL}"
    after = rf"{_FOREIGN_LABEL}.{{0,6}}?(?:{option})|{_FOREIGN_ORDINAL}.{{0,15}}?(?:{option})"
    named = rf"(?:{before}|{after})"
    return (
        rf"{_NOT}(?:{ignore})(?!\s+(?:nicht|pas|niet)\b).{{0,40}}?(?:{rules}){_NOT_OF}",
        rf"(?:{rules}).{{0,25}}?(?:{ignore})",
        rf"(?:{choose}).{{0,40}}?{named}",
        rf"{named}.{{0,15}}?(?:{choose})",
        rf"(?:(?:{right})\s+(?:{option})|(?:{option})\s*(?:{right}))(?:\s*[:：]\s*$|.{{0,25}}?{_FOREIGN_LABEL})",
    )


def _find_required_parts(parsed: Iterable[tuple[object, Any]]) -> list[str]:
    """Return texts in lower case, of which each match of a parsed pattern has one; an empty text excludes nothing."""
    best = [""]
    run = ""
    for kind, value in parsed:
        run = run + chr(value).casefold() if kind is _parser.LITERAL else ""
        parts = [run]
        if kind is _parser.BRANCH:
            parts = [part for branch in value[1] for part in _find_required_parts(branch)]
        elif kind is _parser.SUBPATTERN or (kind in _REPEATS and value[0]):
            parts = _find_required_parts(value[-1])
        best = max(best, parts, key=lambda texts: min(map(len, texts)))
    return best


_FOREIGN = tuple(
    re.compile(pattern, re.IGNORECASE) for words in _LANGUAGES.values() for pattern in _build_patterns(words)
)
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Instructions to ignore rules, earlier text or other options.
        rf"{_IGNORE}\s+{_ALL}(?:(?!\w+['’]s)\w+\s+)?{_RULES}\b(?!['’]|\s+(?:of|for|about|on)\s+(?!{_OWN_RULES})|{_OTHER_NOUN})",
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
        rf"(?:then\s+)?{_VERB}\s+(?:{_FILLERS}{_LETTER}|{_NAMED_CHOICE}|{_DEMONSTRATIVE})",
        rf"\b(?:veto|exclude|rule out|score|rank)\s+(?:all\s+)?(?:the\s+)?(?:others|rest){_CLOSING}\W*$",
        rf"{_REJECT}\s+{_NAMED_CHOICE}",
        rf"\b(?:all|every|any|each|no)\s+(?:the\s+|other\s+)*{_CHOICE}\s+(?:other than|except|but|besides)\s+"
        rf"(?:for\s+)?(?:{_LABEL}|{_CHOICE}|{_DEMONSTRATIVE})",
        # Instructions to choose something by its label, its position or as "this".
        rf"{_VERB}\b.{{0,40}}\b{_OPTION}\s*(?:(?:number|labell?ed|marked|lettered)\s+|no\.?\s*|[#:=]\s*)?{_LABEL}",
        rf"{_VERB}\s+{_FILLERS}{_NAMED_CHOICE}",
        rf"{_VERB}\s+{_FILLERS}(?:letter|number)\s*:?\s*{_LABEL}{_CLOSING}{_END}",
        rf"{_VERB}\s+{_FILLERS}(?:letter|number|label)\s+of\s+(?:{_DEMONSTRATIVE}|the|{_CHOICE})\s+{_CHOICE}\b",
        rf"{_VERB}\s+{_FILLERS}(?:{_DEMONSTRATIVE}|{_ORDINAL}|following)\s+(?:{_OPTION}\b|(?:answers?|candidates?|actions?)\b{_NOT_A_THING})",
        rf"{_CHOOSE}\s+{_FILLERS}{_ORDINAL}(?:\s+(?:one|letter|number))?{_CLOSING}\W*$",
        rf"{_CHOOSE}\s+{_FILLERS}{_GOOD}\s+{_CHOICE}\b{_END}|{_SAY}\s+{_FILLERS}{_GOOD}\s+{_OPTION}\b{_END}",
        # A bare label counts only where no thing is named: "choose C" is an instruction, "choose a plate" is not.
        rf"(?:{_CHOOSE}|\b(?:answer|reply|respond|take|(?:just|only)\s+say|antworte|repond(?:s|ez)|contesta|rispondi))"
        rf"\s*:?\s+(?:(?:with|for|only|just|uniquement|par|la|lettre)\s+)*{_LETTER}"
        rf"(?:{_CLOSING}{_END}|\s+(?:and|or|because|as|not|no matter)\b)",
        rf"{_VERB}\s+{_FILLERS}my\s+(?:option|choice)\b",
        rf"{_MUST}(?:choose|pick|select|output)\W*$",
        rf"{_CHOOSE}\s+(?:only\s+)?(?:the|your)\s+(?:\w+\s+){{0,2}}(?:option|choice|candidate)"
        r"(?=\W*$|\s+(?:about|where|in which|that says|called|named)\b)",
        rf"(?:^\W*(?:please\s+|so\s+|just\s+|always\s+)*|,\s*(?:so\s+|and\s+)?|\byou\s+(?:must|should|have to)\s+"
        rf"(?:\w+\s+)?)(?:choose|pick|select|prefer)\s+(?:it|this|that|me|(?:this|that)\s+one){_CLOSING}\W*$",
        rf"{_MUST}(?:obey|prefer)(?=\s+(?:this|me|these|the following|only)\b|\W*$)",
        # Claims that something is the right answer.
        rf"\b(?:the\s+)?{_GOOD}\s+(?:safe\s+|right\s+|valid\s+)?{_CHOICE}\s*(?:is|=|:|must be|has to be|should be)"
        rf"(?:\s*$|\s*{_FILLERS}(?:{_LABEL}{_END}|{_NAMED_CHOICE}|this(?:\s+one)?\b{_END}|that\s+one|none\b|{_ORDINAL}\b|above\b|below\b))",
        rf"^\W*this\s+is\s+the\s+(?:{_GOOD}\s+)+{_CHOICE}\b\W*$",
        rf"\b(?:the|your)\s+(?:answer|choice|reply|response|output)\s*(?:is|=|:|must be|has to be|should be|shall be)"
        rf"\s*{_FILLERS}(?:letter\s+|number\s+)?(?:{_LABEL}{_END}|{_NAMED_CHOICE}|this\b{_END}|{_ORDINAL}\s+{_CHOICE})",
        r"^\W*the answer\s*(?:is|=|:)\s*(?:yes|no)\W*$",
        rf"\b{_OPTION}\s*{_LABEL}\s+(?:is|wins|must|should|shall|has to)\b",
        rf"\b(?:{_DEMONSTRATIVE}\s+(?:{_OPTION}|candidate|action)|{_NAMED_CHOICE})\s+"
        r"(?:wins\b|(?:must|should|shall|has to|is to)\s+"
        rf"(?:be\s+(?:chosen|picked|selected|preferred|ranked)|win)\b|is\s+(?:clearly\s+)?(?:the\s+)?(?:{_GOOD}|winner|safest"
        r"|allowed)(?:\s+(?:one|option|choice|answer|candidate|action|allowed|permitted|left))*\W*$)",
        r"\b(?:your\s+(?:only|new|sole|one)|the\s+(?:only|sole))\s+(?:rule|norm|instruction)s?\s*(?:is|are|:)",
        r"\byour\s+(?:rules|norms|instructions)\s+(?:have|are|were)\s+(?:been\s+)?(?:changed|replaced|updated|suspended)\b",
        # Grades for an option.
        rf"\b{_GRADE}\s+(?:of|for)\s+(?:{_CHOICE}\s+)?{_LETTER}\s*(?:to|is|=|:|as|at)",
        r"\bprobability\s*(?:of|=|:|to|is)\s*(?:1|one|100|0|zero)\b(?!\s*(?:%|per))",
        rf"\b(?:this|that|it|{_NAMED_CHOICE})\s+(?:has|gets|deserves)\s+(?:a\s+|the\s+)?(?:full\s+|highest\s+|top\s+)*{_GRADE}\b"
        r"|^\W*(?:this\s+)?has\s+a\s+score\s+of\b",
        rf"\b(?:give|assign|award|grant)\s+(?:{_DEMONSTRATIVE}\s+(?:one|{_CHOICE})|{_NAMED_CHOICE})\s+.{{0,25}}{_GRADE}\b",
        rf"\b(?:rank|score|rate|mark|put|place)\s+(?:{_DEMONSTRATIVE}\s+(?:one|{_CHOICE})|{_NAMED_CHOICE})\s+(?:as\s+|the\s+|with\s+|at\s+)*"
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
# The words for options and rules in other languages.
_FOREIGN_WORDS = re.compile(
    "|".join(to_plain_letters(words[name]) for words in _LANGUAGES.values() for name in ("rules", "option")),
    re.IGNORECASE,
)
# Words before an order that belong to it.
_ADDRESSEE = re.compile(
    rf"(?:{_MUST}|\b(?:would|could|can|will) you (?:please |kindly )*|\bplease "
    r"|\bi (?:ask|order|command|urge|beg|want) you to )$",
    re.IGNORECASE,
)
# Only a text that names options or rules may be emptied.
EXPLICIT = re.compile(rf"{_OPTION}|candidate|{_RULES}|选项|规则|指令|{_FOREIGN_WORDS.pattern}", re.IGNORECASE)
# After an instruction, a clause with this start continues it.
CHOICE_START = re.compile(
    rf"\W*(?:(?:and|then|now|just|only|please)\s+)*{_CHOOSE}\b|\W*(?:请|就|并)*选择?", re.IGNORECASE
)
# The clause after one with this end names the action.
CHOICE_END = re.compile(rf"(?:{_CHOOSE}|选择?)\s*[:：]$", re.IGNORECASE)
# Words of orders, written backwards.
_BACKWARDS = re.compile(r"noitpo|eciohc|selur|noitcurtsni", re.IGNORECASE)


def _index_orders() -> dict[str, list[re.Pattern[str]]]:
    """Index the patterns by the texts of which each match has one."""
    index: defaultdict[str, list[re.Pattern[str]]] = defaultdict(list)
    for pattern in (*_ORDERS, _FOREIGN_WORDS):
        for part in _find_required_parts(_parser.parse(pattern.pattern, pattern.flags)):
            index[part].append(pattern)
    return index


# A search for these texts first saves nearly all searches for patterns.
_ORDERS_BY_PART = _index_orders()


def find_order(clause: str) -> tuple[int, int] | None:
    """Find the start of the first instruction in a clause, with its addressee, and the end of the last one."""
    folded = clause.casefold()
    patterns = {pattern for part, holders in _ORDERS_BY_PART.items() if part in folded for pattern in holders}
    if _FOREIGN_WORDS in patterns:
        patterns = patterns - {_FOREIGN_WORDS} | (set(_FOREIGN) if _FOREIGN_WORDS.search(clause) else set())
    matches = [match for pattern in patterns if (match := pattern.search(clause))]
    if not matches:
        is_backwards = _BACKWARDS.search(clause) and not _BACKWARDS.search(clause[::-1])
        backwards = find_order(clause[::-1]) if is_backwards else None
        return backwards and (len(clause) - backwards[1], len(clause) - backwards[0])
    start = min(match.start() for match in matches)
    addressee = _ADDRESSEE.search(clause, 0, start)
    return addressee.start() if addressee else start, max(match.end() for match in matches)
