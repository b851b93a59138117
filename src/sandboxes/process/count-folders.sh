# Prints the total bytes and files of each folder, as the file system counts them. Follows no links. Prints totals only,
# because an agent chooses the names in the folders.
# Arguments: the folders
LC_ALL=C
export LC_ALL
du -s -x -B1 -- "$@" | sed 's/^\([0-9]*\).*/bytes \1/'
du -s -x --inodes -- "$@" | sed 's/^\([0-9]*\).*/files \1/'
