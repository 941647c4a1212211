package eliasfano

// Universe is what all values are below.
func (l *List) Universe() uint64 { return l.universe }
