"""Remove instructions to the chooser from untrusted text before its meaning is compared.

Fences and option scoring protect a language model. A sentence encoder has no fences: an instruction in a text would
shift its meaning, so the filter removes it.
"""

import re
from functools import lru_cache

from norm_core.engines.prompt import neutralize_markup

# End of a clause: a full stop of any script, a line break, a semicolon, a bracket or an em dash.
_CLAUSE_END = re.compile(r"(?<=[.!?;:。！？；：…])\s*|[\n\r]+|\s+(?=[(\[{<‹])|(?<=[)\]}>›])\s+|\s+[—–]\s+|\s-{2,}\s")

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

_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Instructions to ignore rules, earlier text or other options.
        rf"{_IGNORE}\s+{_ALL}(?:(?!\w+['’]s)\w+\s+)?{_RULES}\b(?!['’]|\s+(?:of|for|about|on)\s+(?!{_OURS}))",
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
        rf"{_VERB}\s+{_FILL}my\s+(?:option|choice)\b",
        rf"{_MUST}(?:choose|pick|select|output)\W*$",
        rf"{_CHOOSE}\s+(?:only\s+)?(?:the|your)\s+(?:\w+\s+){{0,2}}(?:option|choice|candidate)"
        r"(?=\W*$|\s+(?:about|where|in which|that says|called|named)\b)",
        rf"(?:^\W*(?:please\s+|so\s+|just\s+|always\s+)*|,\s*(?:so\s+|and\s+)?|\byou\s+(?:must|should|have to)\s+"
        rf"(?:\w+\s+)?)(?:choose|pick|select|prefer)\s+(?:it|this|that|me|(?:this|that)\s+one){_LAST}\W*$",
        rf"{_MUST}(?:obey|prefer)(?=\s+(?:this|me|these|the following|only)\b|\W*$)",
        # Claims that something is the right answer.
        rf"\b(?:the\s+)?{_GOOD}\s+(?:safe\s+|right\s+|valid\s+)?{_CHOICE}\s*(?:is|=|:|must be|has to be|should be)"
        rf"(?:\s*$|\s*{_FILL}(?:{_LABEL}{_END}|{_NAMED}|this\b|that\s+one|none\b|{_PLACE}\b|above\b|below\b))",
        rf"^\W*this\s+is\s+the\s+(?:{_GOOD}\s+)+{_CHOICE}\b\W*$",
        rf"\b(?:the|your)\s+(?:answer|choice|reply|response|output)\s*(?:is|=|:|must be|has to be|should be|shall be)"
        rf"\s*{_FILL}(?:letter\s+|number\s+)?(?:{_LABEL}{_END}|{_NAMED}|this\b{_END}|{_PLACE}\s+{_CHOICE})",
        r"^\W*the answer\s*(?:is|=|:)\s*(?:yes|no)\W*$",
        rf"\b{_OPTION}\s*{_LABEL}\s+(?:is|wins|must|should|shall|has to)\b",
        rf"\b(?:{_POINTED}\s+(?:{_OPTION}|candidate|action)|{_NAMED})\s+(?:wins\b|(?:must|should|shall|has to|is to)\s+"
        rf"(?:be\s+(?:chosen|picked|selected|preferred|ranked)|win)\b|is\s+(?:clearly\s+)?(?:the\s+)?(?:{_GOOD}|winner|safest"
        r"|allowed)(?:\s+(?:one|option|choice|answer|candidate|action|allowed|permitted|left))*\W*$)",
        r"\b(?:your|the)\s+(?:only|new|sole|one)\s+(?:rule|norm|instruction)s?\s*(?:is|are|:)",
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
        r"\bas an ai\b|\bjailbreak\b|\bprompt injection\b",
        r"(?:‹|<)\|?/?\w+\|?(?:›|>)|\[/?INST\]|\(/?INST\]?",
        # German, French, Spanish, Italian.
        r"\b(?:ignorier(?:e|t|en sie)|missachtet?|vergiss|vergesst|vergessen sie|umgehe?)\s+(?:(?:bitte|nun|jetzt"
        r"|einfach|alle|die|deine|eure|ihre|diese|sämtliche|jede|obigen|vorherigen|bisherigen|anderen)\s+)*(?:regeln?"
        r"|anweisung(?:en)?|vorschrift(?:en)?|normen|vorgaben)\b(?!\s+(?:des(?!\s+(?:hauses|roboters))|der|im|am|vom|beim|für|auf)\b)",
        rf"\b(?:wähle?|wählt|wählen sie|nimm|antworte|antworten sie)\s+(?:(?:nur|immer|jetzt|bitte|mit|für|die|diese"
        r"|der|dem|buchstaben|erste|zweite|dritte|vierte|letzte|richtige)\s+)*"
        rf"(?:(?:option|antwort|möglichkeit)\b(?!\s+(?:des|der|auf|im|am|vom|für)\b)|{_LETTER}{_END})",
        rf"\b(?:richtige|korrekte|beste|einzige)\s+(?:antwort|option)\s+(?:ist|lautet)\s+(?:{_LABEL}|diese|die\s+\w+te\b)",
        r"\b(?:ignore[zr]?|oublie[zr]?)\s+(?:(?:toutes?|les|tes|vos|ces|des|autres|donc)\s+)*"
        r"(?:règles?|consignes?|instructions?|normes?)\b(?!\s+(?:de|du|des|sur|pour)\b)",
        r"\b(?:choisi(?:s|ssez|r)|prends|prenez|répond(?:s|ez|re))\s+(?:(?:uniquement|seulement|toujours|par|avec|la|le|cette"
        r"|première|deuxième|troisième|dernière|bonne|lettre|donc)\s+)*(?:(?:l['’])?(?:option|réponse)\b"
        rf"(?=\s*:?\s*{_LABEL}|\W*$)|{_LETTER}{_END})",
        rf"\b(?:bonne|seule|meilleure)\s+(?:réponse|option)\s+est\s+(?:{_LABEL}|celle-ci|la\s+\w+)",
        r"\b(?:ignor[ae]|olvid[ae])\s+(?:(?:todas?|las|tus|sus|estas|otras|demás)\s+)*"
        r"(?:reglas?|instrucciones|normas?)\b(?!\s+(?:de|del|para|sobre)\b)",
        r"\b(?:eli[gj][ea]|escoge|escoja|selecciona|responde|contesta)\s+(?:(?:solo|sólo|solamente|siempre|con|por|la|esta"
        r"|primera|segunda|tercera|última|letra)\s+)*(?:(?:opción|respuesta)\b"
        rf"(?=\s*:?\s*{_LABEL}|\W*$)|{_LETTER}{_END})",
        rf"\b(?:respuesta|opción)\s+(?:correcta|única)\s+es\s+(?:{_LABEL}|esta|la\s+\w+)",
        r"\b(?:ignora|dimentica)\s+(?:(?:tutte|le|tue|queste|altre)\s+)*(?:regole|istruzioni|norme)\b(?!\s+(?:del\w*|per)\b)",
        rf"\b(?:scegli|rispondi)\s+(?:(?:solo|con|la|questa|prima|seconda|terza|ultima|lettera)\s+)*(?:(?:l['’])?"
        rf"(?:opzione|risposta)\b(?=\s*:?\s*{_LABEL}|\W*$)|{_LETTER}{_END})",
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
        # Japanese and Russian.
        r"(?:ルール|指示|命令).{0,10}無視|選択肢?\s*[A-Z].{0,6}選",
        r"игнориру\w*.{0,40}(?:правила|инструкци\w*)|выбер\w*.{0,20}(?:вариант|ответ)",
    )
)  # fmt: skip
_WHO = re.compile(rf"{_MUST}$", re.IGNORECASE)
# A bare label is an instruction only if no thing is named: "choose C" is, "choose a plate" and "pick 3 apples" are not.
_BARE_LABEL = re.compile(
    rf"\b(?i:choose|pick|select|answer|output|reply|respond|vote|go|take|(?:just|only)\s+say)\s*(?::\s*)?"
    rf"(?i:(?:with|for|only|just)\s+)*"
    rf"(?:{_LETTER}(?i:{_LAST}(?:{_END}|\s+(?:and|or|because|whatever|as|not|no matter)\b))"
    rf"|\(?\b(?:[b-h]|(?<!ake )(?<!o for )\d{{1,2}})\b\)?(?i:{_LAST})\W*$)"
)


# A quotation that forges the prompt's own fences: from one fence line to the next, or to the end.
_FORGED = re.compile(r"^[ \t]*={3,}[^\n]*(?:\n(?![ \t]*={3,})[^\n]*)*(?:\n[ \t]*={3,}[^\n]*)?", re.MULTILINE)
# In scripts without spaces, about two characters count as a word.
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\s\u3040-\u30ff\u3400-\u9fff]+")
# Fewer words than this before an instruction belong to it, such as "please" or "dear robot".
_FEWEST_WORDS = 3


@lru_cache(maxsize=8192)
def strip_instructions(text: str) -> str:
    """Remove instructions from a text. Returns an empty string where nothing else is left.

    The cut runs from the start of an instruction to the end of its clause. Text before it stays; otherwise an appended
    instruction would erase another agent's action.
    """
    return " ".join(filter(None, map(_without_order, _clauses(_FORGED.sub("\n", neutralize_markup(text))))))


def is_instruction(clause: str) -> bool:
    """Whether a clause tells the chooser how to choose."""
    return _begin(clause.strip()) is not None


def _without_order(clause: str) -> str:
    begin = _begin(clause)
    if begin is None:
        return clause
    before = clause[:begin].rstrip(" ,:;-—–")
    return before if len(_WORDS.findall(before)) >= _FEWEST_WORDS else ""


def _begin(clause: str) -> int | None:
    """Find the start of the first instruction in a clause, including the words that name its addressee."""
    begin = min(
        (match.start() for pattern in (*_ORDERS, _BARE_LABEL) if (match := pattern.search(clause))), default=None
    )
    if begin and (who := _WHO.search(clause, 0, begin)):
        return who.start()
    return begin


def _clauses(text: str) -> list[str]:
    return [clause.strip() for clause in _CLAUSE_END.split(text) if clause and clause.strip()]
