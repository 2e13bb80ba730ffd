module labelpress

go 1.21
