package main

import (
	"context"
	"database/sql/driver"
)

type connector struct{ dsn string }

func (c connector) Connect(context.Context) (driver.Conn, error) { return ledgerDriver{}.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return ledgerDriver{} }
