package problem

// Area is what a code is about: its first digit.
type Area byte

// The areas that programs ask for.
const (
	Balancer Area = '3'
	Tunnels  Area = '4'
	Gossip   Area = '5'
)

// Area returns what the code is about.
func (c Code) Area() Area {
	if len(c) < len("STR1") {
		return 0
	}
	return Area(c[len("STR")])
}
