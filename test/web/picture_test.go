package web

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
)

// small makes a picture smaller: the page has few colours but for the edges of letters.
func small(text []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	type near struct{ r, g, b uint8 }
	kinds := map[near]map[color.RGBA]int{}
	size := full.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			c := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
			k := near{c.R >> 3, c.G >> 3, c.B >> 3}
			if kinds[k] == nil {
				kinds[k] = map[color.RGBA]int{}
			}
			kinds[k][c]++
		}
	}
	// Of similar colours, the most frequent stands for all. What is far from grey counts more: few letters
	// are red or green.
	weight := map[color.RGBA]int{}
	for _, colours := range kinds {
		best := slices.MaxFunc(slices.Collect(maps.Keys(colours)), func(a, b color.RGBA) int { return cmp.Compare(colours[a], colours[b]) })
		for _, n := range colours {
			weight[best] += n * (1 + int(max(best.R, best.G, best.B)-min(best.R, best.G, best.B)))
		}
	}
	most := slices.SortedFunc(maps.Keys(weight), func(a, b color.RGBA) int { return cmp.Compare(weight[b], weight[a]) })
	palette := color.Palette{}
	for _, c := range most[:min(len(most), 256)] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(size, palette)
	draw.Draw(out, size, full, size.Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out)
	return b.Bytes(), err
}
