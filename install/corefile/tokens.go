package corefile

import "strings"

// token is a word of a Corefile. Words are split as CoreDNS's lexer does: at white space, with
// quotes and comments.
type token struct {
	text       string // without quotes
	start, end int    // bytes in the file
	line       int    // from 1
}

// tokens splits the text into words and skips comments.
func tokens(s string) (out []token) {
	line := 1
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
			i++
		case c == '#':
			for i < len(s) && s[i] != '\n' {
				i++
			}
		case c == '"':
			t := token{start: i, line: line}
			t.text, i, line = quoted(s, i+1, line)
			t.end = i
			out = append(out, t)
		default:
			start := i
			for i < len(s) && !strings.ContainsRune(" \t\r\n\v\f", rune(s[i])) {
				i++
			}
			out = append(out, token{s[start:i], start, i, line})
		}
	}
	return out
}

// quoted reads up to the closing quote; \" stands for a quote.
func quoted(s string, i, line int) (text string, end, endLine int) {
	var b strings.Builder
	for i < len(s) {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '"':
			i++
		case s[i] == '"':
			return b.String(), i + 1, line
		case s[i] == '\n':
			line++
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String(), i, line
}

// block is a server block, or a snippet, whose name is in parentheses.
type block struct {
	keys       []token
	directives []directive
	shut       token // the closing brace
}

// directive is a plugin with its arguments, or an option of a plugin. body is within its braces.
type directive struct {
	name token
	args []token
	// open and shut are its braces; without them both are zero.
	open, shut token
	body       []directive
}

func (d directive) braces() bool { return d.open.text != "" }

// parser iterates over tokens.
type parser struct {
	list []token
	at   int
}

func (p *parser) peek() (token, bool) {
	if p.at >= len(p.list) {
		return token{}, false
	}
	return p.list[p.at], true
}

// parse reads a Corefile with braces around its server blocks. A file with a single block need not
// have them, but is refused here without.
func parse(s string) ([]block, error) {
	p := &parser{list: tokens(s)}
	var out []block
	for p.at < len(p.list) {
		var b block
		for {
			t, ok := p.peek()
			if !ok {
				return nil, mistake(p.list[len(p.list)-1], "a server block has no braces")
			}
			p.at++
			if t.text == "{" && len(b.keys) == 0 {
				return nil, mistake(t, "a server block has no zone")
			}
			if t.text == "{" {
				break
			}
			if t.text == "}" {
				return nil, mistake(t, "a closing brace has no opening brace")
			}
			b.keys = append(b.keys, t)
			if len(b.keys) == 2 && b.keys[0].text == "import" && b.keys[0].line == t.line {
				b.keys = nil // an import at the top level
				if p.at == len(p.list) {
					return out, nil
				}
			}
		}
		var err error
		if b.directives, b.shut, err = p.body(); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// body reads directives up to the closing brace.
func (p *parser) body() (out []directive, shut token, err error) {
	for {
		t, ok := p.peek()
		if !ok {
			return nil, token{}, mistake(p.list[len(p.list)-1], "a brace is not closed")
		}
		p.at++
		if t.text == "}" {
			return out, t, nil
		}
		if t.text == "{" {
			return nil, token{}, mistake(t, "a brace is opened without a plugin")
		}
		d := directive{name: t}
		last := t.line
		for {
			a, ok := p.peek()
			if !ok || a.line != last || a.text == "}" {
				break
			}
			p.at++
			if a.text != "{" {
				d.args = append(d.args, a)
				last = a.line + strings.Count(a.text, "\n")
				continue
			}
			d.open = a
			if d.body, d.shut, err = p.body(); err != nil {
				return nil, token{}, err
			}
			break
		}
		out = append(out, d)
	}
}
