"""Camera, microphone, words and speakers: messages in, frames and utterances with source stamps out."""
