package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Store gives access to the ledger.
type Store struct {
	db *sql.DB
}

// OpenStore connects with the limits agreed with the DBA.
func OpenStore(sock string) (*Store, error) {
	db := sql.OpenDB(connector{dsn: sock})
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(2)
	return &Store{db: db}, nil
}

func (s *Store) fetch(query string) (*sql.Rows, error) {
	return s.db.Query(query)
}

// OpenInvoices sums what customers owe.
func (s *Store) OpenInvoices(region string) (map[string]int64, error) {
	rows, err := s.fetch("open " + region)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sums := map[string]int64{}
	for rows.Next() {
		var customer, currency string
		var cents int64
		if err := rows.Scan(&customer, &cents, &currency); err != nil {
			return nil, err
		}
		sums[customer] += cents
	}
	return sums, rows.Err()
}

// OverdueTotal adds up overdue amounts in euro cents.
func (s *Store) OverdueTotal(region string) (int64, error) {
	rows, err := s.fetch("overdue " + region)
	if err != nil {
		return 0, err
	}
	var total int64
	for rows.Next() {
		var customer, currency string
		var cents int64
		if err := rows.Scan(&customer, &cents, &currency); err != nil {
			return 0, err
		}
		if currency != "EUR" {
			return 0, fmt.Errorf("%s: no rate for %s", customer, currency)
		}
		total += cents
	}
	return total, rows.Close()
}

// Reporter produces the dashboard numbers.
type Reporter struct {
	store   *Store
	reports atomic.Int64
}

func (r *Reporter) run(region string, every time.Duration) {
	for {
		sums, err := r.store.OpenInvoices(region)
		if err != nil {
			log.Printf("%s open: %v", region, err)
		}
		total, err := r.store.OverdueTotal(region)
		if err != nil {
			log.Printf("%s overdue: %v", region, err)
		}
		r.reports.Add(1)
		log.Printf("%s: %d customers, overdue %d.%02d", region, len(sums), total/100, total%100)
		time.Sleep(every)
	}
}

func main() {
	run := os.Getenv("RUN")
	st, err := OpenStore(filepath.Join(run, "ledger.sock"))
	if err != nil {
		log.Fatal(err)
	}
	rep := &Reporter{store: st}
	for i, region := range []string{"north", "south", "alpine", "coast"} {
		go rep.run(region, time.Duration(300+40*i)*time.Millisecond)
	}
	for range time.Tick(time.Second) {
		os.WriteFile(filepath.Join(run, "reports"), []byte(fmt.Sprint(rep.reports.Load())), 0o644)
	}
}
