module fullpipe/stack

go 1.26
