module invoicereport

go 1.22
