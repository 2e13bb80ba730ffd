module edgeauth

go 1.22
