import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Names without hashes: the built files are committed, and a build of the same sources must give the same files.
export default defineConfig({
  base: "/console/",
  plugins: [react()],
  build: {
    outDir: "../src/interlock/console/page",
    emptyOutDir: true,
    modulePreload: false,
    target: "es2022",
    rollupOptions: {
      output: {
        entryFileNames: "assets/console.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
