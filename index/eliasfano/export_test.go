package eliasfano

// Universe returns the bound that all values are below.
func (l *List) Universe() uint64 { return l.universe }
