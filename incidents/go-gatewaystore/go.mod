module gatewaystore

go 1.22
