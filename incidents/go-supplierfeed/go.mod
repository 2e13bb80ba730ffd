module supplierfeed

go 1.24
