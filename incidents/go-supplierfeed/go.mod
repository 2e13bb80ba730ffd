module supplierfeed

go 1.22
