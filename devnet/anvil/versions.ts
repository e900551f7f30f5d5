/** The programs of Foundry that are used here. */
export type Tool = 'anvil' | 'cast'

/** The release that everything was tried with. */
export const foundryVersion = '1.7.1'

/** What npm must deliver for the package that is run through an emulator. */
export const amd64Integrity: Record<Tool, string> = {
  anvil:
    'sha512-+XmShybEaxfCrr0OUUZwYEy2OnYZt5pHH9TzBtLv3+VrK0O/ANuNSVEahqNhKHlgX7GRJ59383ofNhxkRWIYTg==',
  cast: 'sha512-XUpTM2rwtkF8BJ02dae38NNZAx5QfycWRpdR2RmSgOJnasvXuvN58whDVLjQu8IDHEV/fCNIa49aE8V74pmDwQ==',
}
