package main

import (
	"bufio"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
)

// ledgerDriver speaks the line protocol of the ledger database.
type ledgerDriver struct{}

func (ledgerDriver) Open(dsn string) (driver.Conn, error) {
	c, err := net.Dial("unix", dsn)
	if err != nil {
		return nil, err
	}
	return &wireConn{c: c, r: bufio.NewReader(c)}, nil
}

type wireConn struct {
	c net.Conn
	r *bufio.Reader
}

func (w *wireConn) Prepare(q string) (driver.Stmt, error) { return nil, errors.New("not supported") }
func (w *wireConn) Begin() (driver.Tx, error)             { return nil, errors.New("not supported") }
func (w *wireConn) Close() error                          { return w.c.Close() }

func (w *wireConn) QueryContext(_ context.Context, q string, _ []driver.NamedValue) (driver.Rows, error) {
	if _, err := io.WriteString(w.c, q+"\n"); err != nil {
		return nil, driver.ErrBadConn
	}
	return &wireRows{w: w}, nil
}

type wireRows struct {
	w    *wireConn
	done bool
}

func (r *wireRows) Columns() []string { return []string{"customer", "cents", "currency"} }

func (r *wireRows) Close() error {
	for !r.done {
		if err := r.Next(make([]driver.Value, 3)); err != nil {
			return nil
		}
	}
	return nil
}

func (r *wireRows) Next(dest []driver.Value) error {
	line, err := r.w.r.ReadString('\n')
	if err != nil {
		r.done = true
		return err
	}
	line = strings.TrimSpace(line)
	if line == "." {
		r.done = true
		return io.EOF
	}
	f := strings.Split(line, "|")
	cents, _ := strconv.ParseInt(f[1], 10, 64)
	dest[0], dest[1], dest[2] = f[0], cents, f[2]
	return nil
}
