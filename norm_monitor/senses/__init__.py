"""Camera, microphone, words and who said them: messages in, frames and utterances stamped at the source out."""
