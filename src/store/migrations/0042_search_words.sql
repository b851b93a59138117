-- works-from: 0027
-- sessions_with_words uses session_lexemes_index from here on: its definition (src/store/sql) is applied right after this. Nodes of
-- the version before ask that function for the same words in the same form; they miss words in which letters and digits alternate
-- until they are replaced.
-- Made by earlier forms of 0022.
drop index if exists session_words;
