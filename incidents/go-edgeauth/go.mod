module edgeauth

go 1.24
