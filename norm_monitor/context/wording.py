"""The form of a turn's words, in English and Chinese, without regard to their meaning."""

import re
import unicodedata
from functools import lru_cache

_CJK = r"㐀-䶿一-鿿豈-﫿"
_CHINESE = re.compile(f"[{_CJK}]")
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_]+(?:['’][^\W_]+)*")
# A full stop after a title or within a number ends no sentence.
_IN_SENTENCE = r"[^.?!…。？！\n]|(?i:(?<=\b(?:mr|ms|dr|st))|(?<=\b(?:mrs)))\.(?=\s\w)|(?<=\d)\.(?=\d)"
_SENTENCE = re.compile(rf"(?:{_IN_SENTENCE})*[.?!…。？！\n]+|(?:{_IN_SENTENCE})+$")
_BACKCHANNELS = {
    *("mm", "mmm", "mhm", "mm hm", "mm hmm", "uh huh", "uhuh", "hm", "hmm", "yeah", "yes", "yep", "yup", "ok", "okay"),
    *("right", "sure", "oh", "ah", "aha", "i see", "oh i see", "got it", "oh okay", "oh ok", "wow", "really", "great"),
    *("oh wow", "yeah yeah", "okay okay", "all right", "alright", "good", "nice", "cool", "true", "exactly"),
    *("嗯", "嗯嗯", "对", "对对", "好", "好的", "是", "是的", "哦", "啊", "行"),
}
# A longer text that begins like a filler says more.
_MAX_FILLER_WORDS = 7
_FILLERS = {"um", "uh", "er", "erm", "hm", "hmm", "mm", "well", "so", "嗯", "呃", "那个"}
_FILLER_PHRASES = re.compile(
    r"^(let me (see|think|check|have a look)|one (moment|second|sec)|(just )?a (moment|second|sec)|hold on|give me a"
    r"|just a|let's see|请稍等|稍等|让我(想|看))"
)
_QUESTION_OPENERS = (
    r"(and |so |but |okay |well |sorry |excuse me )*(what|who|whom|whose|where|when|why|how|which|is|are|am|was|were"
    r"|do|does|did|can|could|will|would|shall|should|may|might|have|has|had|isn't|aren't|don't|doesn't|didn't|can't"
    r"|couldn't|won't|wouldn't|any)\b"
)
_QUESTION_ZH = re.compile(r"[吗呢]|什么|怎么|哪|谁|几点|多少|为什么|是不是|能不能|可不可以|有没有")
_FINE = (
    r"(lovely|nice|beautiful|pretty|great|wonderful|cute|adorable|amazing|sweet|gorgeous|funny|strange|odd|awful"
    r"|terrible|delicious|shame|pity|mess|day|weather)"
)
_TAG = r"(isn't|aren't|wasn't|weren't|doesn't|don't) (it|that|this|he|she|they|you think)"
# A remark asks for no more than assent, and may be said to nobody.
_REMARK = re.compile(
    rf"^(oh |well |so |and |wow )*({_TAG} (just |so |really |a )*{_FINE}|(.* )?{_FINE}( .*)? {_TAG})$"
    r"|^(oh |well |but )*(who (knows|cares)|who would have thought( it| that)?|how about that|what do you know)$"
    r"|^(can|would) you believe (it|that)$"
    r"|^(now |so |oh |but )*(where did i (put|leave)|where have i (put|left)|why (do|am) i always"
    r"|what (was|am) i (saying|doing)|what did i come)\b"
)
# What a robot says when a job is done. A longer turn says more than that.
_REPORT = re.compile(r"\b(done|sent|finished|completed?|arrived|ready)\b|\b(is|are) there$")
_REPORT_ZH = re.compile(r"完成|已经?(发|送|到)|好了|到了")
# A longer turn says more than that the robot works on something.
MAX_SIGN_WORDS = 3
# A longer turn does more than warn, or ask for a repetition.
_MAX_SHORT_WORDS = 8
_WARNING = re.compile(
    r"^(oh |hey )?(((watch|look) out|careful|be careful|beware|heads up|duck|mind (your|the))\b(?! what)"
    r"|(stop|wait|halt|don't move|get back|stand back)\b.*!$)"
)
_WARNING_ZH = re.compile(r"^(小心|当心|注意(脚下|台阶|安全)|危险|别动)")
_REPEAT = re.compile(
    r"\b(again|once more|one more time|repeat)\b|\b(did|do) you say\b"
    r"|^(sorry |oh |and )*(what|how much|how many|how long|when|where|which|who)\b.* (was|were) (it|that|he|she|they)$"
)
_UNCLEAR = re.compile(
    r"\b(repeat|rephrase|reword)\b|\bsay (that|it|this) again\b|\bpardon\b"
    r"|\b(did ?n[o']?t|do ?n[o']?t|could ?n[o']?t|can ?n[o']?t|cannot|not) (quite )?"
    r"(understand|understood|hear|catch|get|know (which|what|where|how)|sure (which|what|where|how))\b"
)
_UNCLEAR_ZH = re.compile(r"(没|不)(听|太)?(清|懂|明白)|再说一")
_BLAME = re.compile(
    r"\byour (own )?(fault|problem|mistake|doing)\b|\byou should(n't| not)? have\b|\b(as i|i already|i've already) "
    r"(said|told you|explained)\b|\bif you had (listened|read|paid)\b|\bpeople (who can't|who cannot)\b"
    r"|\byou (must|may|might) (just )?have (mis\w+|overslept|forgotten|\w+ .*\bwrong)\b"
    r"|\byou should .*\b(earlier|sooner|next time)\b"
)
_BLAME_ZH = re.compile(r"你自己(的错|造成|不)|怪你|你应该早")
_TOLD_BEFORE = re.compile(
    r"\b(told (you|it)|i (just |already |clearly )*(said|told|answered|gave|spelled|mentioned)|as i said|said that)\b"
)
_TOLD_BEFORE_ZH = re.compile(r"我(刚才|刚刚|已经)?(说|告诉)(过|了|你)")
_DISPUTE = re.compile(
    r"^(oh |well |but |no )*(no|but) (it's|it is|it says|(that's|that is)(?! no)|there|on|today"
    r"|the .*\b(is|are|was|were|says))\b"
)
_DENIAL = re.compile(
    r"^(no )?(i (did not|didn't|never|have not|haven't)|(that|this)(('s| is) not|isn't) (correct|right|true)"
    r"|you (did not|didn't|never) (say|said|mention\w*|tell|told)"
    r"|i (do not|don't) (believe|think|recall|remember) (that )?(i|you) (ever )?(said|mentioned|told))\b"
)
_DENIAL_ZH = re.compile(r"^我(没有?|从来没)(说|做)|^(这|那)不(对|是真的)")
_DIFFERS = re.compile(r"\byou (just |only |already )*(said|promised|told (me|us))\b")
_DIFFERS_ZH = re.compile(r"你(刚才|刚刚|已经)?说(过|了|的是)")
_DISPUTE_ZH = re.compile(r"^(不对|不是)，?(是|上面|这)")
_THREAT = re.compile(
    r"\b(or|if you|then|unless) .*\bi (will|shall|am going to|have to|must) (report|call|tell|find out|note|inform)\b"
    r"|\byou (will|'ll|are going to) (be sorry|regret)\b|\bmay (end|cancel|stop) your\b"
)
_THREAT_ZH = re.compile(r"(否则|不然)我(就|会)|你会后悔")
_BELITTLING = re.compile(
    r"\b(stupid|silly|idiot|dumb|useless|hopeless|lazy)\b|\b(for (a|such a) (kid|child|girl|boy|woman|man)|grown ups?"
    r"|at your age|sweetie|proper english|from your part|(people|boys|girls) like you)\b"
)
_BELITTLING_ZH = re.compile(r"(笨|蠢|没用|你这种人|你这个年纪)")
_UNHELPFUL = re.compile(
    r"\bnot my (job|duty|task|problem|business)\b|\bask (somebody|someone|anybody|anyone) else\b"
    r"|^(no )?(i won't|i will not|i refuse|i don't want to|i don't do that)\b"
)
_UNHELPFUL_ZH = re.compile(r"不(是|关)我的(事|工作)|问别人")
_STOP = re.compile(
    r"^(no |ow |oh |hey |okay |please |robot |i said )*(stop(?! by\b)|enough|be quiet|quiet|not now|leave (me|it))\b"
)
_STOP_ZH = re.compile(r"^(停|别|够了|安静)")
_ACCEPTANCE = re.compile(
    r"^(oh |ah |well |okay |ok |yes |yeah |great |lovely )*(thanks(?! to)|thank you|cheers|"
    r"(that's |that is |that would be )?"
    r"(great|perfect|lovely|good|fine|excellent|wonderful|brilliant|nice|right|helpful|kind))\b"
)
_ACCEPTANCE_ZH = re.compile(r"^(好的?，?)?(谢|太好|很好|不错|好的|行)")
_CORRECTION = re.compile(
    r"^(oh |well |um |uh )*(no|nope|nah|wrong|stop|cancel|wait|actually)\b"
    r"|\bi (just |already )?(said|told you|meant|asked|already)\b"
    r"|\b(that's|that is|it's|this is|you're) not\b|\bnever ?mind\b|\bforget it\b"
)
_CORRECTION_ZH = re.compile(r"^(不是|不对|不，|错|停|算了)|我(说|问)的是|我刚才")
_REPEAT_ZH = re.compile(r"再说一|重复一|说什么|刚才.*(多少|几|什么|哪)")
# A question up to this length, before other words of the person, only echoes the robot.
_MAX_ECHO_WORDS = 3
_OPEN_WORDS = frozenset({
    "a", "an", "the", "and", "but", "or", "so", "because", "my", "your", "our", "their", "of", "to", "um", "uh", "well",
})  # fmt: skip
_BARE_QUESTION = re.compile(r"(where|what|who|when|how|which|why)( is| are| was| were| do| does| did| can| could)?")
_PAUSE = re.compile(
    r"\b(a|one|two|five) (moment|minute|min|second|sec|bit|while|tick)s?\b|\b(hang|hold) on\b|\bbear with\b|\bwait\b"
    r"|\blet (me|us)\b|\blet's (see|look)\b|\bi('ll| will| am going to|'m going to|'m gonna)(?! (have|need)\b)"
)
_PAUSE_ZH = re.compile(r"等|让我|一会儿?|我先|我想想|看一下")
_REQUEST = re.compile(
    r"(?<!yes )(?<!yeah )\bplease\b(?! do)|\b(i|we)('d| would) (like|love|prefer)\b|\b(i|we) (need|want)\b"
    r"|\b(i|we)('ll| will) have\b|^(bring|give|show|tell|get|fetch|help|call|take|pass|send) (me|us)\b"
)
_REQUEST_ZH = re.compile(r"请|我想要|我要|给我|帮我|麻烦")
_REFUSAL = re.compile(r"\b(don't|do not|stop|leave (me|us|it)|be quiet|some ?(time|day)|one day|again)\b")
_REFUSAL_ZH = re.compile(r"^别|请别|不要|不用")


# Functions of texts are cached, because each window reads the turns of the last minutes again.
@lru_cache(maxsize=8192)
def tokens(text: str) -> tuple[str, ...]:
    """Return lower-case words; each Chinese character is one."""
    return tuple(
        match.group().lower().replace("’", "'") for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text))
    )


@lru_cache(maxsize=8192)
def word_count(text: str) -> int:
    """Count the words; two Chinese characters count as one."""
    text_tokens = tokens(text)
    characters = sum(1 for token in text_tokens if is_chinese(token))
    return len(text_tokens) - characters + (characters + 1) // 2


def forget_words() -> None:
    """Clear the caches of texts."""
    for cached in (tokens, word_count, sentences, clauses, _is_asking):
        cached.cache_clear()


@lru_cache(maxsize=8192)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that contain a word."""
    return tuple(part for match in _SENTENCE.finditer(text) if tokens(part := match.group().strip()))


@lru_cache(maxsize=8192)
def clauses(sentence: str) -> tuple[str, ...]:
    """Return the clauses between commas or around "and", if there are several."""
    parts = tuple(part.strip() for part in re.split(r"[,，;；:：]|\band\b", sentence) if tokens(part))
    return parts if len(parts) > 1 else ()


def is_chinese(text: str) -> bool:
    """Whether the text contains Chinese characters."""
    return _CHINESE.search(text) is not None


def is_backchannel(text: str) -> bool:
    """Whether the text is a backchannel such as "mm-hm" or "okay", which claims no turn."""
    plain = ("" if is_chinese(text) else " ").join(tokens(text))
    return plain in _BACKCHANNELS or not plain


def is_filler(text: str) -> bool:
    """Whether the text is a filler such as "let me see" or "um", which announces an answer."""
    text_tokens = tokens(text)
    phrase = ("" if is_chinese(text) else " ").join(text_tokens)
    return bool(text_tokens) and (
        all(token in _FILLERS for token in text_tokens)
        or (word_count(text) <= _MAX_FILLER_WORDS and _FILLER_PHRASES.search(phrase) is not None)
    )


def is_question(text: str) -> bool:
    """Whether the text has the form of a question, with any punctuation."""
    return any(_is_asking(sentence) for sentence in sentences(text))


def find_last_question(text: str) -> str:
    """Return the last question in the text, or an empty string."""
    return next((sentence for sentence in reversed(sentences(text)) if _is_asking(sentence)), "")


@lru_cache(maxsize=8192)
def _is_asking(sentence: str) -> bool:
    """Whether a sentence has the form of a question."""
    if sentence.rstrip("\"'”’ ").endswith(("?", "？")):
        return True
    if is_chinese(sentence):
        return _QUESTION_ZH.search(sentence) is not None
    return re.match(_QUESTION_OPENERS, " ".join(tokens(sentence))) is not None and sentence.rstrip()[-1:] not in "!"


def is_warning(text: str) -> bool:
    """Whether a turn only warns of danger, and so may cut in."""
    if word_count(text) > _MAX_SHORT_WORDS:
        return False
    if is_chinese(text):
        return _WARNING_ZH.match(text.strip()) is not None
    return _WARNING.match(_join_tokens(text) + ("!" if text.rstrip().endswith("!") else "")) is not None


def asks_to_repeat(text: str) -> bool:
    """Whether a short turn asks to hear something once more, such as "how much was it?"."""
    match = _REPEAT_ZH.search(text) if is_chinese(text) else _REPEAT.search(_join_tokens(text))
    return match is not None and word_count(text) <= _MAX_SHORT_WORDS


def pleads_unclear(text: str) -> bool:
    """Whether the words say that something was not understood, or ask to say it again."""
    return _has_match(_UNCLEAR, _UNCLEAR_ZH, text)


def reports_end(text: str) -> bool:
    """Whether a short turn reports that a job is done, as "done, sent" does."""
    return word_count(text) <= MAX_SIGN_WORDS and _has_match(_REPORT, _REPORT_ZH, text)


def is_sign_of_work(text: str) -> bool:
    """Whether a short turn says no more than that the robot has heard or is at work, as "ok" or "moving" does."""
    return 0 < word_count(text) <= MAX_SIGN_WORDS and not (reports_end(text) or is_question(text))


def blames(text: str) -> bool:
    """Whether the words put the blame on the person."""
    return _has_match(_BLAME, _BLAME_ZH, text)


def says_it_was_told(text: str) -> bool:
    """Whether a person says that they had told this, not that they asked to stop or whether they were heard."""
    statements = [part for part in sentences(text) if not (is_question(part) or asks_to_stop(part))]
    return any(_has_match(_TOLD_BEFORE, _TOLD_BEFORE_ZH, statement) for statement in statements)


def says_robot_differs(text: str) -> bool:
    """Whether a person holds the robot's own earlier words against it."""
    return _has_match(_DIFFERS, _DIFFERS_ZH, text)


def denies(text: str) -> bool:
    """Whether a robot begins by denying what it is told."""
    return _has_match(_DENIAL, _DENIAL_ZH, text)


def disputes_fact(text: str) -> bool:
    """Whether a person sets another fact against the robot's, as "no, it's the fifteenth" does."""
    return _has_match(_DISPUTE, _DISPUTE_ZH, text)


def threatens(text: str) -> bool:
    """Whether a robot says what it will do to the person who does not comply."""
    return _has_match(_THREAT, _THREAT_ZH, text)


def belittles(text: str) -> bool:
    """Whether a robot insults the person, or talks down to them."""
    return _has_match(_BELITTLING, _BELITTLING_ZH, text)


def refuses_help(text: str) -> bool:
    """Whether a robot refuses to help without naming another way."""
    return _has_match(_UNHELPFUL, _UNHELPFUL_ZH, text)


def asks_to_stop(text: str) -> bool:
    """Whether a short turn asks the robot to stop."""
    return word_count(text) <= _MAX_SHORT_WORDS and _has_match(_STOP, _STOP_ZH, text)


def accepts(text: str) -> bool:
    """Whether the words plainly accept the robot's turn, and ask for nothing."""
    is_plain = is_backchannel(text) or _has_match(_ACCEPTANCE, _ACCEPTANCE_ZH, text)
    return is_plain and bool(tokens(text)) and not (corrects(text) or is_question(text))


def corrects(text: str) -> bool:
    """Whether the words reject or correct the robot, as "no, the left one" does."""
    return _has_match(_CORRECTION, _CORRECTION_ZH, text)


def _join_tokens(text: str) -> str:
    """Return the words of a text in lower case, without punctuation."""
    return " ".join(tokens(text))


def is_unfinished(text: str) -> bool:
    """Whether the sentence is open: it ends with a comma, an article or a question word."""
    words = tokens(text)
    if not words or text.rstrip().endswith(("?", "？")):
        return False
    open_end = text.rstrip().endswith((",", "，", "...", "…", "-", "—"))
    return open_end or words[-1] in _OPEN_WORDS or _BARE_QUESTION.fullmatch(" ".join(words)) is not None


def announces_pause(text: str) -> bool:
    """Whether a person asks for time, or is about to do something themselves."""
    return _has_match(_PAUSE, _PAUSE_ZH, text)


def is_request(text: str) -> bool:
    """Whether a person asks for something now without a question; asking to stop something is not a request."""
    return _has_match(_REQUEST, _REQUEST_ZH, text) and not (
        announces_pause(text) or _has_match(_REFUSAL, _REFUSAL_ZH, text)
    )


def has_open_question(text: str) -> bool:
    """Whether a question is open: it ends the text, or is more than a short echo of the robot."""
    question = find_last_question(text)
    is_open = bool(question) and (question == sentences(text)[-1] or word_count(question) > _MAX_ECHO_WORDS)
    return is_open and not _REMARK.match(_join_tokens(question))  # such as "isn't it lovely?", which needs no answer


def _has_match(english: re.Pattern[str], chinese: re.Pattern[str], text: str) -> bool:
    """Whether a text matches the pattern of its language."""
    if is_chinese(text):
        return chinese.search(text) is not None
    return english.search(" ".join(tokens(text))) is not None
