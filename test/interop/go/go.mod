module interop

go 1.21
