// Package spec contains the documents that define the two interfaces, in the version that the venue was last compared
// with. It splits each document into Facts, so that a test can check each of them.
package spec

import (
	_ "embed" // of the documents
	"regexp"
	"strings"
)

// Trading is the document of the trading interface, in Markdown.
//
//go:embed trading.md
var Trading string

// TradingDecisions defines the behavior that Trading leaves open, in Markdown.
//
//go:embed trading-decisions.md
var TradingDecisions string

// Onboarding is the document of the onboarding interface, in Markdown.
//
//go:embed onboarding.md
var Onboarding string

// OnboardingDecisions defines the behavior that Onboarding leaves open, in Markdown.
//
//go:embed onboarding-decisions.md
var OnboardingDecisions string

// Fact is one statement of a document: a cell of a table, an item of a list, or a sentence. Semicolons separate several
// facts in one of these. In a column called Change, commas separate them as well.
type Fact struct {
	Line    int    // in the document, from 1
	Section string // the heading above it
	Subject string // for a table, the first cells of the row, enough to be unique; for an item, the list's title and its number
	Column  string // the heading of a table's cell
	Text    string // without the final period
}

// Key identifies a fact within its section, using only words of the document: a fact with a changed text has a new key.
func (f Fact) Key() string {
	switch {
	case f.Column != "":
		return f.Subject + " · " + f.Column + ": " + f.Text
	case f.Subject != "":
		return f.Subject + ". " + f.Text
	}
	return f.Text
}

// Parse splits a document into facts. Lines without a statement give no fact: headings, the heads of tables, and a line
// that ends in a colon, which is the title of the list below it.
func Parse(document string) []Fact {
	p := parser{lines: strings.Split(document, "\n")}
	for p.at < len(p.lines) {
		p.block()
	}
	return p.facts
}

type parser struct {
	lines   []string
	at      int
	section string
	title   string // of a list
	facts   []Fact
}

var numbered = regexp.MustCompile(`^(\d+)\. (.*)`)

// block reads a table or a line.
func (p *parser) block() {
	line := strings.TrimSpace(p.lines[p.at])
	switch {
	case strings.HasPrefix(line, "|"):
		p.table()
		return
	case strings.HasPrefix(line, "#"):
		p.section, p.title = strings.TrimSpace(strings.TrimLeft(line, "#")), ""
	case strings.HasPrefix(line, "- "):
		first := p.at
		p.say(first, p.title, "", p.whole(line[2:]))
	case numbered.MatchString(line):
		first, item := p.at, numbered.FindStringSubmatch(line)
		p.say(first, strings.TrimSpace(p.title+" "+item[1]), "", p.whole(item[2]))
	case strings.HasSuffix(line, ":"):
		p.title = strings.TrimSuffix(line, ":")
	case line != "":
		p.say(p.at, "", "", line)
	}
	p.at++
}

// whole returns an item with its indented continuation lines.
func (p *parser) whole(item string) string {
	for p.at+1 < len(p.lines) && strings.HasPrefix(p.lines[p.at+1], "  ") {
		p.at++
		item += " " + strings.TrimSpace(p.lines[p.at])
	}
	return item
}

// table reads a table to its end.
func (p *parser) table() {
	first := p.at
	var rows [][]string
	for p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "|") {
		rows = append(rows, cells(p.lines[p.at]))
		p.at++
	}
	head, body := rows[0], rows[min(2, len(rows)):]
	named := distinct(body)
	for i, row := range body {
		before := len(p.facts)
		for column := named; column < len(head) && column < len(row); column++ {
			text := row[column]
			if column == len(head)-1 {
				text = strings.Join(row[column:], "|") // in code a bar does not end a cell
			}
			p.say(first+2+i, strings.Join(row[:named], " "), head[column], text)
		}
		if len(p.facts) == before { // the first cells are the whole statement
			p.say(first+2+i, "", "", strings.Join(row[:named], " "))
		}
	}
}

func cells(line string) []string {
	out := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// distinct returns the number of first cells that make the rows unique: at least one.
func distinct(rows [][]string) int {
	for n := 1; ; n++ {
		seen := make(map[string]bool)
		for _, row := range rows {
			seen[strings.Join(row[:min(n, len(row))], "|")] = true
		}
		if len(seen) == len(rows) || len(rows) == 0 || n >= len(rows[0]) {
			return n
		}
	}
}

// say adds the facts of a cell, an item or a line.
func (p *parser) say(line int, subject, column, text string) {
	for sentence := range strings.SplitSeq(text, ". ") {
		for fact := range strings.SplitSeq(strings.TrimSuffix(sentence, "."), "; ") {
			parts := []string{fact}
			if column == "Change" {
				parts = strings.Split(fact, ", ")
			}
			for _, part := range parts {
				if part != "" {
					p.facts = append(p.facts, Fact{Line: line + 1, Section: p.section, Subject: subject, Column: column, Text: part})
				}
			}
		}
	}
}
